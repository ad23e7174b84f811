// Requests and tunnels of visitors that are under way. Their number is bounded; they end when their preview is removed or changes its token.
import { IsletError } from '@islet/contract'
import type { PreviewRecord } from '../db/previews.ts'

/** A sandbox takes 1024 requests at once; this leaves room for commands and files. */
const MAX_OF_SANDBOX = 512
const MAX = 4096

interface Visit {
  sandboxId: string
  port: number
  /** An upgraded connection: lasts until one side leaves. */
  isTunnel: boolean
  end(): void
}

export class Visits {
  readonly #open = new Set<Visit>()
  readonly #counts = new Map<string, number>()
  readonly #idle: (() => void)[] = []

  /** `end` breaks the connection. Call the returned function when the visit is over; calling it twice is fine. */
  enter(record: PreviewRecord, end: () => void, options: { isTunnel: boolean }): () => void {
    const { sandboxId, port } = record
    const count = this.#counts.get(sandboxId) ?? 0
    if (count >= MAX_OF_SANDBOX || this.#open.size >= MAX)
      throw new IsletError('too_many_requests', 'This preview has too many visitors at once.')
    const visit = { sandboxId, port, end, ...options }
    this.#open.add(visit)
    this.#counts.set(sandboxId, count + 1)
    return () => this.#leave(visit)
  }

  #leave(visit: Visit): void {
    if (!this.#open.delete(visit)) return
    const left = this.#counts.get(visit.sandboxId)! - 1
    if (left === 0) this.#counts.delete(visit.sandboxId)
    else this.#counts.set(visit.sandboxId, left)
    if (this.#open.size === 0) for (const tell of this.#idle.splice(0)) tell()
  }

  endAll({ sandboxId, port }: PreviewRecord): void {
    for (const visit of [...this.#open]) if (visit.sandboxId === sandboxId && visit.port === port) visit.end()
  }

  /** Breaks the tunnels, waits for the requests up to `timeoutMs`, then breaks the rest. */
  async drain(timeoutMs: number): Promise<void> {
    for (const visit of [...this.#open]) if (visit.isTunnel) visit.end()
    if (this.#open.size === 0) return
    const timer = setTimeout(() => {
      for (const visit of [...this.#open]) visit.end()
    }, timeoutMs)
    await new Promise<void>((resolve) => this.#idle.push(resolve))
    clearTimeout(timer)
  }
}
