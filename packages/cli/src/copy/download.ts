import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FileEntry, Sandbox } from '@islet/sdk'
import { CliError } from '../errors.ts'
import { say, writeAll } from '../output.ts'
import { baseName } from './location.ts'
import { Progress } from './progress.ts'
import { untar } from './untar.ts'

/** A file or directory of a sandbox onto this machine. Answers with where it is here. */
export async function copyOut(sandbox: Sandbox, remote: string, local: string): Promise<string> {
  const entry = await sandbox.files.stat(remote)
  const target = await targetHere(local, baseName(entry.path))
  using progress = new Progress(remote, entry.type === 'directory' ? undefined : entry.sizeBytes)
  try {
    if (entry.type === 'directory') await copyTreeOut(sandbox, entry, target, progress)
    else await copyFileOut(sandbox, entry, target, progress)
  } catch (error) {
    throw explain(error, target)
  }
  return target
}

/** A file as it is; a directory as a tar. */
export async function copyOutToStdout(sandbox: Sandbox, remote: string): Promise<void> {
  const { path, type } = await sandbox.files.stat(remote)
  const stream =
    type === 'directory'
      ? await sandbox.files.readArchive(path, { gzip: false })
      : await sandbox.files.readStream(path)
  for await (const part of stream) await writeAll(process.stdout, part)
}

async function copyTreeOut(
  sandbox: Sandbox,
  entry: FileEntry,
  target: string,
  progress: Progress,
): Promise<void> {
  const archive = await sandbox.files.readArchive(entry.path, { gzip: false })
  const { skipped } = await untar(progress.count(archive), target)
  if (skipped.length > 0)
    say(`islet: left out what is neither file, directory nor link: ${skipped.join(' ')}`)
}

/** Whole or not at all. */
async function copyFileOut(
  sandbox: Sandbox,
  entry: FileEntry,
  target: string,
  progress: Progress,
): Promise<void> {
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}`)
  const mode = Number.parseInt(entry.mode, 8) & 0o777
  const content = Readable.from(progress.count(await sandbox.files.readStream(entry.path)), {
    objectMode: false,
  })
  try {
    await pipeline(content, createWriteStream(temporary, { flags: 'wx', mode }))
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function targetHere(local: string, name: string): Promise<string> {
  const found = await stat(local).catch(() => undefined)
  return found?.isDirectory() || local.endsWith('/') ? join(local, name) : local
}

function explain(error: unknown, target: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === undefined) return error
  return new CliError(code ?? 'internal', `${target} cannot be written: ${(error as Error).message}.`, {
    hint: `ls -ld ${dirname(target)}; df -h ${dirname(target)}`,
    cause: error,
  })
}
