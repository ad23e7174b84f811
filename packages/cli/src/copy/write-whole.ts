import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Writes to a temporary file and renames it, so that `path` is never half written. */
export async function writeWhole(
  path: string,
  content: AsyncIterable<Uint8Array>,
  options: { mode: number; flush?: boolean },
): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`)
  try {
    await pipeline(
      Readable.from(content, { objectMode: false }),
      createWriteStream(temporary, { flags: 'wx', ...options }),
    )
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
