/**
 * When a process is ended because its clients have left: so long after the last of them went, unless one comes back.
 * One that no client was ever attached to goes on.
 */
export class Abandonment {
  readonly #end: () => void
  #limitMs: number | null
  #clients = 0
  #timer: NodeJS.Timeout | undefined

  /** `null`: never. */
  constructor(limitMs: number | null, end: () => void) {
    this.#limitMs = limitMs
    this.#end = end
  }

  /** Call what it answers when the client leaves; twice is fine. */
  join(): () => void {
    this.#clients++
    clearTimeout(this.#timer)
    let isHere = true
    return () => {
      if (isHere && --this.#clients === 0) this.begin()
      isHere = false
    }
  }

  /** The time runs from now, unless a client is there. */
  begin(afterMs = this.#limitMs): void {
    clearTimeout(this.#timer)
    if (this.#limitMs === null || afterMs === null || this.#clients > 0) return
    this.#timer = setTimeout(this.#end, afterMs).unref()
  }

  /** The process has ended. */
  stop(): void {
    this.#limitMs = null
    clearTimeout(this.#timer)
  }
}
