/** The handlers of `on` and `off`, by event name. */
export class Handlers<Events extends Record<string, unknown>> {
  readonly #handlers = new Map<keyof Events, Set<(event: never) => unknown>>()

  on<Name extends keyof Events>(name: Name, handler: (event: Events[Name]) => unknown): void {
    let set = this.#handlers.get(name)
    if (!set) {
      set = new Set()
      this.#handlers.set(name, set)
    }
    set.add(handler)
  }

  off<Name extends keyof Events>(name: Name, handler: (event: Events[Name]) => unknown): void {
    this.#handlers.get(name)?.delete(handler)
  }

  /** Calls all handlers of the event. An error in one is printed to the console and does not stop the others. */
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const handler of [...(this.#handlers.get(name) ?? [])]) {
      try {
        const result = (handler as (event: Events[Name]) => unknown)(event)
        if (result instanceof Promise) result.catch(report)
      } catch (error) {
        report(error)
      }
    }
  }

  clear(): void {
    this.#handlers.clear()
  }
}

function report(error: unknown): void {
  console.error('A handler failed:', error)
}
