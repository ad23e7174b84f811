/** Cleanup steps, run in reverse order. Running twice is fine; a failing step does not stop the rest. */
export class Cleanup {
  /** Whether no sandbox would continue without this server. */
  isIdle: () => boolean = () => true
  #steps: ((options: { all: boolean }) => unknown)[] = []
  #running: Promise<void> | undefined

  add(step: (options: { all: boolean }) => unknown): void {
    this.#steps.push(step)
  }

  run(options: { all: boolean }): Promise<void> {
    this.#running ??= this.#run(options)
    return this.#running
  }

  async #run(options: { all: boolean }): Promise<void> {
    const errors: unknown[] = []
    for (const step of this.#steps.reverse()) {
      try {
        await step(options)
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0)
      throw errors.length === 1 ? errors[0] : new AggregateError(errors, 'closing failed in several places')
  }
}
