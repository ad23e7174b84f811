// The content of files below a Confined root.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { IsletError } from '@islet/sdk'
import type { Confined } from './confined.ts'
import { shown } from './errors.ts'

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants
/** Opening a fifo would otherwise wait for its other end. */
const SAFE = O_NOFOLLOW | O_NONBLOCK
/** A file becomes one string, which cannot be much larger. */
export const MAX_FILE_BYTES = 256 * 1024 * 1024

export function readBytes(confined: Confined, path: string): Promise<Buffer> {
  return confined.at(path, async (at) => (await readAt(at, path, MAX_FILE_BYTES)).bytes)
}

/** Replaces the content of a file, or makes it. */
export function writeBytes(confined: Confined, path: string, bytes: Buffer, mode?: number): Promise<void> {
  const write = async (at: string) => {
    await using file = await openFile(at, path, O_WRONLY | O_CREAT | O_TRUNC)
    await file.handle.writeFile(bytes)
    if (mode !== undefined) await file.handle.chmod(mode)
  }
  return confined.at(path, write, { parents: true })
}

/** Reads a file that has at most `most` bytes. */
export async function readAt(
  at: string,
  path: string,
  most: number,
): Promise<{ bytes: Buffer; mode: number }> {
  await using file = await openFile(at, path, O_RDONLY)
  const chunks: Buffer[] = []
  let size = 0
  // One byte more than allowed tells that it is too large; the file may be growing.
  for await (const chunk of file.handle.createReadStream({ end: most, autoClose: false })) {
    chunks.push(chunk)
    size += chunk.length
  }
  if (size > most) throw new IsletError('limit_exceeded', `${shown(path)} has more than ${most} bytes.`)
  return { bytes: Buffer.concat(chunks), mode: file.mode }
}

async function openFile(at: string, path: string, flags: number) {
  const handle: FileHandle = await open(at, flags | SAFE, 0o666)
  const found = await handle.stat()
  if (found.isFile()) return { handle, mode: found.mode & 0o777, [Symbol.asyncDispose]: () => handle.close() }
  await handle.close()
  if (found.isDirectory()) throw new IsletError('is_a_directory', `${shown(path)}: the path is a directory.`)
  throw new IsletError('not_a_file', `${shown(path)}: the path is not a regular file.`)
}
