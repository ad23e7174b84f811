/** Callers who ask for the same key while its work runs share that run. */
export class Shared<Result> {
  readonly #running = new Map<string, Promise<Result>>()

  run(key: string, work: () => Promise<Result>): Promise<Result> {
    let running = this.#running.get(key)
    if (!running) {
      running = work().finally(() => this.#running.delete(key))
      this.#running.set(key, running)
    }
    return running
  }

  isRunning(key: string): boolean {
    return this.#running.has(key)
  }
}
