/** Callers wait for the next `wake`. */
export class Wakeup {
  #next: PromiseWithResolvers<void> | undefined

  wait(): Promise<void> {
    this.#next ??= Promise.withResolvers<void>()
    return this.#next.promise
  }

  wake(): void {
    this.#next?.resolve()
    this.#next = undefined
  }
}
