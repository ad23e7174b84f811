// A client for large files in its own process, so that the heap of the bench does not affect the times.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Order {
  url: string
  apiKey: string
  id: string
  verb: 'write' | 'read'
  path: string
}

export class TransferClient implements AsyncDisposable {
  readonly #to: Omit<Order, 'verb' | 'path'>
  readonly #process: ChildProcess
  /** Rejects when the process ends. */
  readonly #ended: Promise<never>

  constructor(to: Omit<Order, 'verb' | 'path'>) {
    this.#to = to
    this.#process = fork(fileURLToPath(new URL('transfer-client.ts', import.meta.url)))
    this.#ended = once(this.#process, 'exit').then(([code]) => {
      throw new Error(`the client of large files ended with ${code}`)
    })
    this.#ended.catch(() => {})
  }

  /** In milliseconds. */
  async time(verb: Order['verb'], path: string): Promise<number> {
    this.#process.send({ ...this.#to, verb, path } satisfies Order)
    const answered = once(this.#process, 'message') as Promise<[{ ms: number; error?: string }]>
    const [answer] = await Promise.race([answered, this.#ended])
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer.ms
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.connected) this.#process.disconnect()
    await this.#ended.catch(() => {})
  }
}
