import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { hasCode, type Sandbox } from '@islet/sdk'
import { CliError } from '../errors.ts'
import { withProgress } from '../progress.ts'
import { baseName, joinPath } from './location.ts'

/** Copies a local file or directory into a sandbox. Answers with its path there. */
export async function copyIn(
  sandbox: Sandbox,
  local: string,
  remote: string,
  signal?: AbortSignal,
): Promise<string> {
  const found = await statLocal(local)
  const target = await targetIn(sandbox, remote, baseName(local))
  if (found.isDirectory()) {
    await sandbox.files.makeDir(target, { signal })
    await sandbox.files.writeArchive(target, withProgress(tarOf(local), local), { signal })
  } else {
    const mode = found.mode & 0o777
    const content = withProgress(createReadStream(local), local, found.size)
    await sandbox.files.write(target, content, { mode, signal })
  }
  return target
}

export async function copyStdinIn(sandbox: Sandbox, remote: string): Promise<string> {
  await sandbox.files.write(remote, withProgress(process.stdin, '-'))
  return remote
}

/** Like cp: into the directory if it exists or is written with a slash, else to exactly that path. */
export async function targetIn(sandbox: Sandbox, remote: string, name: string): Promise<string> {
  if (remote.endsWith('/')) return joinPath(remote, name)
  try {
    const { type } = await sandbox.files.stat(remote)
    return type === 'directory' ? joinPath(remote, name) : remote
  } catch (error) {
    if (hasCode(error, 'file_not_found')) return remote
    throw error
  }
}

export async function statLocal(path: string): Promise<Stats> {
  try {
    return await stat(path)
  } catch (cause) {
    throw new CliError('file_not_found', `${path} cannot be read: ${(cause as Error).message}.`, {
      hint: `ls -ld ${path}; a path in a sandbox is SANDBOX:PATH.`,
      cause,
    })
  }
}

/** The files belong to the user in the sandbox. */
const OWNERLESS = ['--owner=0', '--group=0', '--numeric-owner']

/** The content of a directory as a tar. */
export async function* tarOf(directory: string, options = OWNERLESS): AsyncGenerator<Uint8Array> {
  const argv = [...options, '-C', directory, '-cf', '-', '.']
  const child = spawn('tar', argv, { stdio: ['ignore', 'pipe', 'pipe'] })
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-2000)
  })
  const exited = once(child, 'close')
  exited.catch(() => {})
  try {
    yield* child.stdout
    const [code] = (await exited) as [number]
    if (code !== 0) throw new Error(complaint.trim().split('\n').at(-1) || `tar ended with ${code}`)
  } catch (cause) {
    throw new CliError('tar_failed', `${directory} cannot be packed: ${(cause as Error).message}.`, {
      hint: 'Check that tar is installed and that you may read every file in the directory.',
      cause,
    })
  } finally {
    child.kill()
  }
}
