import { setTimeout } from 'node:timers/promises'

/** What a sandbox may print without a wait although nobody reads it, and how fast it may go on then. */
const BURST_BYTES = 8 * 1024 * 1024
const BYTES_PER_SECOND = 16 * 1024 * 1024

/**
 * Holds back output that nobody reads. A program that prints for ever would otherwise keep the server busy with taking in
 * and throwing away what it prints; held back, it waits in its own write and costs nobody anything.
 */
export class Pace {
  #free = BURST_BYTES
  #at = performance.now()

  take(bytes: number): void | Promise<void> {
    const now = performance.now()
    this.#free = Math.min(BURST_BYTES, this.#free + ((now - this.#at) / 1000) * BYTES_PER_SECOND) - bytes
    this.#at = now
    if (this.#free < 0) return setTimeout((-this.#free / BYTES_PER_SECOND) * 1000, undefined, { ref: false })
  }
}
