// What following a command and following a terminal have in common.
import type { ProcessInfo } from '@islet/contract/client'
import type { ProcessResult, Session } from './session.ts'

export class ProcessSession {
  readonly processId: string
  /** The exit code. Rejects when the session was closed before, or the sandbox ended. */
  readonly done: Promise<number>
  protected readonly session: Session
  readonly #kill: (signal?: string | number) => Promise<void>

  constructor(session: Session, kill: (signal?: string | number) => Promise<void>) {
    this.session = session
    this.#kill = kill
    this.processId = session.process.id
    this.done = session.result.then((result) => result.exitCode)
    this.done.catch(() => {})
  }

  get sessionId(): string {
    return this.processId
  }

  get process(): ProcessInfo {
    return this.session.process
  }

  /** All that is known about the end: exit code, signal, timedOut, oom, durationMs. */
  get result(): Promise<ProcessResult> {
    return this.session.result
  }

  /** Signals the process and its whole session; SIGKILL, the default, ends all that it started. */
  kill(signal?: string | number): Promise<void> {
    return this.#kill(signal)
  }
}
