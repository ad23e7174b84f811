// Ctrl-C and its kin: passed on to the command first, then forced.
import { say } from '../output.ts'

const PASSED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
const NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1, SIGQUIT: 3 } as const
export type PassedSignal = (typeof PASSED)[number]

export interface Killable {
  kill(signal?: string): Promise<void>
}

/** Aborts when a signal comes: for the time before there is a command to pass it on to. */
export function abortOnSignals(): Disposable & { signal: AbortSignal } {
  const abort = new AbortController()
  return { signal: abort.signal, ...onSignals(() => abort.abort()) }
}

/** The first signal goes to the command, the second kills it, the third leaves at once. */
export function passSignals(command: Killable): Disposable {
  let count = 0
  return onSignals((signal) => {
    count++
    if (count >= 3) process.exit(128 + NUMBERS[signal])
    command.kill(count === 1 ? signal : 'SIGKILL').catch(() => {}) // it may have ended by itself
  })
}

/** While things are put away, the first signal asks for patience. */
export function holdSignals(): Disposable {
  let count = 0
  return onSignals((signal) => {
    if (++count > 1) process.exit(128 + NUMBERS[signal])
    say('islet: cleaning up; once more leaves at once.')
  })
}

function onSignals(handle: (signal: PassedSignal) => void): Disposable {
  for (const signal of PASSED) process.on(signal, handle)
  return {
    [Symbol.dispose]() {
      for (const signal of PASSED) process.off(signal, handle)
    },
  }
}
