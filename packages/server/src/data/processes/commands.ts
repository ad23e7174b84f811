// Commands whose caller waits for their end: their output is collected for one answer, or given as it comes.
import { DEFAULTS, type ExecParsed, IsletError } from '@islet/contract'
import type { RunningSandbox } from '../../control/fleet.ts'
import { writeGiven } from '../../control/given-files.ts'
import type { Machine } from '../../control/machine.ts'
import type { GuestProcess } from '../../guest/guest.ts'
import { release } from '../output/kept-bytes.ts'
import { type AttachEvent, readFrom } from './attachment.ts'
import { type CollectedOutput, collectOutput } from './collect.ts'
import { placeOf } from './spawn.ts'
import { endOf, type ProcessEnd, type TrackedProcess } from './tracked.ts'
import type { ProcessTracker } from './tracker.ts'

/** Most commands are short: the guest reports start and exit together if the command ends within this time. */
const QUIET_MS = 5

/** Iterate it, or abort: until then the command waits for its reader. */
export interface StreamedCommand {
  processId: string
  events: AsyncIterable<AttachEvent>
}

interface Wait {
  /** Aborts when the client goes away; then the command is killed. */
  signal?: AbortSignal | undefined
  /** The server shuts down while the sandbox is suspended. */
  giveUp(error: IsletError): void
}

export class Commands {
  readonly #tracker: ProcessTracker
  /** Calls that wait for the end of a command. */
  readonly #waiting = new Set<{ machine: Machine; giveUp: Wait['giveUp'] }>()

  constructor(tracker: ProcessTracker) {
    this.#tracker = tracker
  }

  /** Runs to the end. The caller may choose the id, and disposes of the output. */
  async capture(
    sandboxId: string,
    input: ExecParsed,
    options: { processId?: string; signal?: AbortSignal; together?: boolean } = {},
  ): Promise<{ processId: string; result: ProcessEnd; output: CollectedOutput }> {
    const { signal, processId, together } = options
    const { sandbox, tracked } = await this.#prepare(sandboxId, input, { signal, processId })
    const output = collectOutput(input.maxOutputBytes ?? DEFAULTS.execOutputBytes, {
      together,
      bytes: () => this.#tracker.outputs.keep(sandboxId),
    })
    tracked.listeners.add(output)
    const left = Promise.withResolvers<never>()
    left.promise.catch(() => {})
    try {
      const leave = await this.#begin(sandbox, tracked, input, { signal, giveUp: left.reject })
      const result = endOf(await Promise.race([tracked.ended, left.promise]).finally(leave))
      signal?.throwIfAborted()
      if (!result) throw new IsletError('sandbox_lost', tracked.lostBecause)
      return { processId: tracked.record.id, result, output }
    } catch (error) {
      release(output)
      throw error
    }
  }

  /** Resolves when the command runs. */
  async stream(
    sandboxId: string,
    input: ExecParsed,
    { signal }: { signal: AbortSignal },
  ): Promise<StreamedCommand> {
    const { sandbox, tracked } = await this.#prepare(sandboxId, input, { signal })
    const reading = readFrom(tracked, undefined)
    let failure: unknown
    const giveUp = (reason: unknown): void => {
      failure = reason
      reading.close()
    }
    const leave = await this.#begin(sandbox, tracked, input, { signal, giveUp }).catch((error) => {
      reading.close()
      throw error
    })
    const abort = () => giveUp(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    async function* events(): AsyncGenerator<AttachEvent> {
      try {
        yield* reading
        if (failure !== undefined) throw failure
      } finally {
        leave()
        signal.removeEventListener('abort', abort)
        reading.close()
      }
    }
    return { processId: tracked.record.id, events: events() }
  }

  /** Before shutdown: calls that wait in suspended sandboxes are answered. */
  leave(): void {
    for (const { machine, giveUp } of this.#waiting) if (machine.suspended) giveUp(leftStill())
  }

  async #prepare(
    sandboxId: string,
    input: ExecParsed,
    { signal, processId }: { signal: AbortSignal | undefined; processId?: string | undefined },
  ): Promise<{ sandbox: RunningSandbox; tracked: TrackedProcess }> {
    const sandbox = await this.#tracker.running(sandboxId)
    signal?.throwIfAborted()
    await writeFiles(sandbox, input, { signal })
    const options = { id: processId, terminal: false, foreground: true, keepAwake: true }
    return { sandbox, tracked: this.#tracker.prepare(sandbox, input, options) }
  }

  /** Starts the command. Call the returned function at its end. */
  async #begin(
    sandbox: RunningSandbox,
    tracked: TrackedProcess,
    input: ExecParsed,
    { signal, giveUp }: Wait,
  ): Promise<() => void> {
    const stdin = input.stdin !== undefined
    const io = { stdin, quietMs: stdin ? undefined : QUIET_MS }
    const process = await this.#tracker.spawn(sandbox, tracked, withTimeout(input, sandbox), io)
    const kill = () => void this.#tracker.cancel(tracked)
    const waiting = { machine: sandbox.machine, giveUp }
    if (signal) this.#waiting.add(waiting)
    signal?.addEventListener('abort', kill, { once: true })
    if (signal?.aborted) kill()
    if (typeof input.stdin === 'string')
      void feed(process, Buffer.from(input.stdin, input.stdinEncoding ?? 'utf8'))
    return () => {
      this.#waiting.delete(waiting)
      signal?.removeEventListener('abort', kill)
    }
  }
}

/** Applies the sandbox's default timeout; 0 means none. */
export function withTimeout<Input extends { timeout?: number }>(
  input: Input,
  { record }: RunningSandbox,
): Input {
  return { ...input, timeout: input.timeout ?? record.timeouts.executionMs }
}

/** The command must not be run again: it goes on when the sandbox resumes. */
const leftStill = () =>
  new IsletError('sandbox_lost', 'The server is shutting down while the sandbox is suspended.', {
    hint: 'The command goes on when the sandbox resumes; find it in the list of its processes.',
  })

/** Before the command starts. */
export async function writeFiles(
  { record, machine }: RunningSandbox,
  input: Pick<ExecParsed, 'cwd' | 'user' | 'files'>,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<void> {
  if (!input.files) return
  const { cwd, user } = placeOf(input, record)
  await writeGiven(machine.guest, input.files, { ...options, directory: cwd, owner: user || undefined })
}

async function feed(process: GuestProcess, bytes: Buffer): Promise<void> {
  try {
    await process.writeStdin(bytes)
    await process.endStdin()
  } catch {
    // The program ended before it read all of stdin.
  }
}
