// The content of a file that was added or changed.
import { type FileChange, IsletError, LIMITS } from '@islet/contract'
import type { Guest } from '../../guest/guest.ts'

type Content = Pick<FileChange, 'content' | 'contentOmitted'>

/** Does not fail if the file is gone or is not a regular file. Symlinks are not followed. */
export async function readContent(
  guest: Guest,
  path: string,
  options: { encoding: 'raw' | 'base64'; signal: AbortSignal },
): Promise<Content> {
  const { encoding, signal } = options
  const max = LIMITS.watchContentBytes
  try {
    // One byte more shows that the file has grown since it was opened.
    const { entry, body } = await guest.read(path, { length: max + 1, nofollow: true, signal })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      if (entry.sizeBytes > max || bytes > max) return { contentOmitted: 'too_large' }
      chunks.push(chunk)
    }
    return { content: Buffer.concat(chunks).toString(encoding === 'base64' ? 'base64' : 'utf8') }
  } catch (error) {
    if (error instanceof IsletError || signal.aborted) return { contentOmitted: 'unreadable' }
    throw error
  }
}

/** Runs several tasks concurrently and hands on their results in the order they were added. */
export class InOrder<T> {
  readonly #atOnce: number
  readonly #handOn: (result: T) => void
  readonly #unfinished: Promise<void>[] = []
  #last: Promise<void> = Promise.resolve()

  constructor(atOnce: number, handOn: (result: T) => void) {
    this.#atOnce = atOnce
    this.#handOn = handOn
  }

  /** Resolves when there is room for more. */
  async add(work: T | Promise<T>): Promise<void> {
    this.#last = Promise.all([work, this.#last]).then(([result]) => this.#handOn(result))
    this.#last.catch(() => {}) // callers that wait get it
    this.#unfinished.push(this.#last)
    if (this.#unfinished.length >= this.#atOnce) await this.#unfinished.shift()
  }

  async finished(): Promise<void> {
    await this.#last
  }
}
