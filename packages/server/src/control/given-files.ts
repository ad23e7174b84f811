// The files that are part of a create or of the start of a command.
import { posix } from 'node:path'
import type { FilesToWriteParsed } from '@islet/contract'
import type { Guest } from '../guest/guest.ts'

const CHUNK_BYTES = 256 * 1024

/** In their order. The first that cannot be written ends it. */
export async function writeGiven(
  guest: Guest,
  files: FilesToWriteParsed,
  options: { directory: string; owner: string | undefined; signal?: AbortSignal },
): Promise<void> {
  const { directory, owner, signal } = options
  for (const file of files) {
    const content = chunks(Buffer.from(file.content, file.encoding))
    const how = { mode: file.mode, owner: file.owner ?? owner, parents: true, signal }
    await guest.write(posix.resolve(directory, file.path), content, how)
  }
}

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
}
