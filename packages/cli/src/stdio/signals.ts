// Ctrl-C and other signals during a command. Before the command runs, a signal aborts. While it runs, signals are passed on
// and the second one kills it. During cleanup, the first signal only prints a message. One more signal always exits at once.
import { onBrokenPipe, say } from '../output.ts'

const PASSED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
const NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1, SIGQUIT: 3 } as const
type PassedSignal = (typeof PASSED)[number]

export interface Killable {
  kill(signal?: string): Promise<void>
}

export class Signals implements Disposable {
  readonly #abort = new AbortController()
  #command: Killable | undefined
  #isCleaningUp = false
  #count = 0

  constructor() {
    for (const signal of PASSED) process.on(signal, this.#handle)
  }

  /** Aborted by a signal that arrives before `passTo`. */
  get aborted(): AbortSignal {
    return this.#abort.signal
  }

  passTo(command: Killable): void {
    this.#command = command
  }

  /** For a command that prints until it is interrupted: a signal or a broken pipe resolves the promise. */
  untilInterrupted(): PromiseWithResolvers<void> {
    const ended = Promise.withResolvers<void>()
    this.passTo({ kill: async () => ended.resolve() })
    onBrokenPipe(ended.resolve)
    return ended
  }

  startCleanup(): void {
    this.#command = undefined
    this.#isCleaningUp = true
    this.#count = 0
  }

  [Symbol.dispose](): void {
    for (const signal of PASSED) process.off(signal, this.#handle)
  }

  readonly #handle = (signal: PassedSignal): void => {
    this.#count++
    if (this.#count > (this.#command ? 2 : 1)) process.exit(128 + NUMBERS[signal])
    if (this.#command) {
      // The command may have ended already.
      this.#command.kill(this.#count === 1 ? signal : 'SIGKILL').catch(() => {})
    } else if (this.#isCleaningUp) say('islet: cleaning up; send the signal again to exit at once.')
    else this.#abort.abort()
  }
}
