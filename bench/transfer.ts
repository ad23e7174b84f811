// A client for large files in a process of its own: what else the bench holds in memory is not in its clock.
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

  constructor(to: Omit<Order, 'verb' | 'path'>) {
    this.#to = to
    this.#process = fork(fileURLToPath(new URL('transfer-client.ts', import.meta.url)))
  }

  /** In milliseconds. */
  async time(verb: Order['verb'], path: string): Promise<number> {
    this.#process.send({ ...this.#to, verb, path } satisfies Order)
    const [answer] = (await once(this.#process, 'message')) as [{ ms: number; error?: string }]
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer.ms
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, 'exit')
    this.#process.disconnect()
    await ended
  }
}
