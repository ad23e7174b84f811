// Locks by name. Work that needs several names waits for all of them.

export class Locks {
  /** The end of the queue of each name. */
  readonly #last = new Map<string, Promise<void>>()

  /** Runs the work when all earlier work on any of these names is done. */
  async run<T>(names: Iterable<string>, work: () => Promise<T>): Promise<T> {
    const { promise: done, resolve } = Promise.withResolvers<void>()
    // All queues are joined at once, so two callers have the same order in each of them: no deadlock.
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

  /** Resolves when no lock is held or waited for. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values())
  }
}
