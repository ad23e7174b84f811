import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FileEntry, Sandbox } from '@islet/sdk'
import { CliError } from '../errors.ts'
import { say, writeAll } from '../output.ts'
import { withProgress } from '../progress.ts'
import { baseName } from './location.ts'
import { untar } from './untar.ts'
import { writeWhole } from './write-whole.ts'

/** Copies a file or directory out of a sandbox. Answers with its local path. */
export async function copyOut(sandbox: Sandbox, remote: string, local: string): Promise<string> {
  const entry = await sandbox.files.stat(remote)
  const target = await targetHere(local, baseName(entry.path))
  try {
    if (entry.type === 'directory') await copyTreeOut(sandbox, entry, target, remote)
    else {
      const content = withProgress(await sandbox.files.readStream(entry.path), remote, entry.sizeBytes)
      await writeWhole(target, content, { mode: Number.parseInt(entry.mode, 8) & 0o777 })
    }
  } catch (error) {
    throw explain(error, target)
  }
  return target
}

/** A file as it is, a directory as a tar. */
export async function copyOutToStdout(sandbox: Sandbox, remote: string): Promise<void> {
  const { path, type } = await sandbox.files.stat(remote)
  const stream =
    type === 'directory'
      ? await sandbox.files.readArchive(path, { gzip: false })
      : await sandbox.files.readStream(path)
  for await (const part of stream) await writeAll(process.stdout, part)
}

async function copyTreeOut(sandbox: Sandbox, entry: FileEntry, target: string, label: string): Promise<void> {
  const archive = await sandbox.files.readArchive(entry.path, { gzip: false })
  const { skipped } = await untar(withProgress(archive, label), target)
  if (skipped.length > 0)
    say(`islet: left out, because they are not files, directories or links: ${skipped.join(' ')}`)
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
