// The exchanges under way: bounded, and breakable when the preview they belong to goes away or changes.
import { IsletError } from '@islet/contract'
import type { PreviewRecord } from '../db/previews.ts'

/** A sandbox takes 1024 requests at once; these leave room for commands and files. */
const MAX_OF_SANDBOX = 512
const MAX = 4096

interface Exchange {
  sandboxId: string
  port: number
  /** Goes on until one side leaves. */
  isTunnel: boolean
  end(): void
}

export class Exchanges {
  readonly #open = new Set<Exchange>()
  readonly #counts = new Map<string, number>()
  readonly #idle: (() => void)[] = []

  /** `end` breaks it. The returned function says that it is over; twice is fine. */
  enter(record: PreviewRecord, end: () => void, options: { isTunnel: boolean }): () => void {
    const { sandboxId, port } = record
    const count = this.#counts.get(sandboxId) ?? 0
    if (count >= MAX_OF_SANDBOX || this.#open.size >= MAX)
      throw new IsletError('too_many_requests', 'This preview has too many visitors at once.')
    const exchange = { sandboxId, port, end, ...options }
    this.#open.add(exchange)
    this.#counts.set(sandboxId, count + 1)
    return () => this.#leave(exchange)
  }

  #leave(exchange: Exchange): void {
    if (!this.#open.delete(exchange)) return
    const left = this.#counts.get(exchange.sandboxId)! - 1
    if (left === 0) this.#counts.delete(exchange.sandboxId)
    else this.#counts.set(exchange.sandboxId, left)
    if (this.#open.size === 0) for (const tell of this.#idle.splice(0)) tell()
  }

  endAll({ sandboxId, port }: PreviewRecord): void {
    for (const exchange of [...this.#open])
      if (exchange.sandboxId === sandboxId && exchange.port === port) exchange.end()
  }

  /** Breaks the tunnels, waits for the others up to `timeoutMs`, then breaks what is left. */
  async drain(timeoutMs: number): Promise<void> {
    for (const exchange of [...this.#open]) if (exchange.isTunnel) exchange.end()
    if (this.#open.size === 0) return
    const timer = setTimeout(() => {
      for (const exchange of [...this.#open]) exchange.end()
    }, timeoutMs)
    await new Promise<void>((resolve) => this.#idle.push(resolve))
    clearTimeout(timer)
  }
}
