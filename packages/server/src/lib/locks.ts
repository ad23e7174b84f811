// One at a time per name: whoever holds several names has waited for each of them, always in the same order.

export class Locks {
  /** The end of the queue of each name. */
  readonly #last = new Map<string, Promise<void>>()

  /** Runs the work alone on all of these names, after whoever asked for one of them before. */
  async run<T>(names: Iterable<string>, work: () => Promise<T>): Promise<T> {
    const { promise: done, resolve } = Promise.withResolvers<void>()
    // All queues are joined at once, so two callers stand in the same order in each of them: none waits in a circle.
    const mine = [...new Set(names)]
    const before = mine.map((name) => this.#last.get(name))
    for (const name of mine) this.#last.set(name, done)
    try {
      await Promise.all(before)
      return await work()
    } finally {
      resolve()
      for (const name of mine) if (this.#last.get(name) === done) this.#last.delete(name)
    }
  }

  /** Until nobody has or wants any. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values())
  }
}
