// Ctrl-C and its kin, through the life of a command: before it runs they abort, while it runs they are passed on (the
// second kills), and while things are put away they ask for patience. One more always leaves at once.
import { say } from '../output.ts'

const PASSED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
const NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1, SIGQUIT: 3 } as const
type PassedSignal = (typeof PASSED)[number]

export interface Killable {
  kill(signal?: string): Promise<void>
}

export class Signals implements Disposable {
  readonly #abort = new AbortController()
  #command: Killable | undefined
  #isHeld = false
  #count = 0

  constructor() {
    for (const signal of PASSED) process.on(signal, this.#handle)
  }

  /** Aborted by a signal that came before there was a command. */
  get aborted(): AbortSignal {
    return this.#abort.signal
  }

  passTo(command: Killable): void {
    this.#command = command
  }

  /** From here on things are put away. */
  hold(): void {
    this.#command = undefined
    this.#isHeld = true
    this.#count = 0
  }

  [Symbol.dispose](): void {
    for (const signal of PASSED) process.off(signal, this.#handle)
  }

  readonly #handle = (signal: PassedSignal): void => {
    this.#count++
    if (this.#count > (this.#command ? 2 : 1)) process.exit(128 + NUMBERS[signal])
    if (this.#command) {
      // It may have ended by itself meanwhile.
      this.#command.kill(this.#count === 1 ? signal : 'SIGKILL').catch(() => {})
    } else if (this.#isHeld) say('islet: cleaning up; once more leaves at once.')
    else this.#abort.abort()
  }
}
