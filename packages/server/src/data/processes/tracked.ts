// One followed process: its output goes to the log and to the attached clients; its end is a promise.
import { constants } from 'node:os'
import type { AwakeReason, Outcome, ProcessInfo } from '@islet/contract'
import { kindOf, type ProcessRecord } from '../../db/processes.ts'
import type { GuestExit, GuestProcess, OutputChannel, OutputSink } from '../../guest/guest.ts'
import { Rate } from '../../lib/rate.ts'
import type { OutputLog } from '../output/output-log.ts'

export type ProcessResult = NonNullable<ProcessInfo['result']>
/** How a process that was not lost has ended. */
export type ProcessEnd = ProcessResult & { outcome: Outcome }

/** Takes output as it comes; no more is sent until a returned promise resolves. */
export interface OutputListener {
  /** It takes no more; further output is unread. */
  readonly full?: boolean
  output(channel: OutputChannel, bytes: Buffer): void | Promise<void>
}

const SIGNAL_NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

/** Why a process was lost, unless there is more to say. */
export const ENDED = 'The sandbox ended before the process did.'

/** How long output is held for the first client. */
const HOLD_MS = 10_000

/** Output that nobody reads: what a sandbox may print without a wait, and how fast it may go on then. */
const UNREAD_BURST_BYTES = 8 * 1024 * 1024
const UNREAD_BYTES_PER_SECOND = 16 * 1024 * 1024

/**
 * Holds back output that nobody reads: a program that prints for ever would keep the server busy reading and discarding it.
 * Held back, the program waits in its own write and costs no CPU.
 */
export const newPace = (): Rate => new Rate(UNREAD_BYTES_PER_SECOND, UNREAD_BURST_BYTES)

export class TrackedProcess implements OutputSink {
  readonly record: ProcessRecord
  readonly log: OutputLog
  readonly listeners = new Set<OutputListener>()
  readonly ended: Promise<ProcessRecord>
  /** Set once the guest has started or found it. */
  guest: GuestProcess | undefined
  /** Why it was lost. */
  lostBecause: string
  readonly abandonment: Abandonment
  /** Ends its use of the sandbox. Calling it twice is fine. */
  leave: () => void = () => {}
  readonly #pace: Rate
  #held: Promise<void> | undefined
  #release: () => void = () => {}
  #settle!: (record: ProcessRecord) => void

  constructor(record: ProcessRecord, log: OutputLog, pace: Rate, abandon: (tracked: TrackedProcess) => void) {
    this.#pace = pace
    this.abandonment = new Abandonment(record.maxRunAfterDisconnectMs, () => abandon(this))
    this.record = record
    this.lostBecause = record.reason ?? ENDED
    this.log = log
    this.ended = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  /** Output waits for `attach`, so that the first client gets all of it. */
  hold(): void {
    this.#held = new Promise((resolve) => {
      this.#release = resolve
    })
    setTimeout(this.#release, HOLD_MS).unref()
  }

  /** Adds a client. Call the returned function when the client leaves. */
  attach(listener: OutputListener): () => void {
    const leave = this.abandonment.join()
    const unlisten = this.listen(listener)
    this.#held = undefined
    this.#release()
    return () => {
      unlisten()
      leave()
    }
  }

  /** Adds a reader that is not a client: its coming releases nothing, and its leaving ends nothing. */
  listen(listener: OutputListener): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  /** The slowest listener limits the program. */
  write(channel: OutputChannel, bytes: Buffer): void | Promise<void> {
    // It was marked as lost while this output was under way.
    if (this.record.status !== 'running') return
    this.log.append(channel, bytes)
    this.record.outputBytes = this.log.end
    const waits: Promise<void>[] = this.#held ? [this.#held] : []
    let isWanted = false
    for (const listener of this.listeners) {
      if (!listener.full) isWanted = true
      const wait = listener.output(channel, bytes)
      if (wait) waits.push(wait)
    }
    if (!isWanted) {
      this.#pace.take(bytes.length)
      const wait = this.#pace.wait()
      if (wait) waits.push(wait)
    }
    if (waits.length > 0) return Promise.all(waits).then(() => {})
  }

  end(status: 'exited' | 'lost', result: ProcessResult | null): void {
    Object.assign(this.record, {
      status,
      result,
      outcome: outcomeOf(result, this.record.cancelSignals),
      reason: status === 'lost' ? this.lostBecause : null,
      endedAt: Date.now(),
      outputBytes: Math.max(this.record.outputBytes, this.log.end),
    })
    this.abandonment.stop()
    this.log.close()
    this.leave()
    this.#settle(this.record)
  }
}

/** Ends a process some time after its last client has left, unless one comes back. A process that never had a client goes on. */
class Abandonment {
  readonly #end: () => void
  #limitMs: number | null
  #clients = 0
  #timer: NodeJS.Timeout | undefined

  /** `null`: never. */
  constructor(limitMs: number | null, end: () => void) {
    this.#limitMs = limitMs
    this.#end = end
  }

  /** Call the returned function when the client leaves; twice is fine. */
  join(): () => void {
    this.#clients++
    clearTimeout(this.#timer)
    let isHere = true
    return () => {
      if (isHere && --this.#clients === 0) this.begin()
      isHere = false
    }
  }

  /** Starts the timer, unless a client is attached. */
  begin(afterMs = this.#limitMs): void {
    clearTimeout(this.#timer)
    if (this.#limitMs === null || afterMs === null || this.#clients > 0) return
    this.#timer = setTimeout(this.#end, afterMs).unref()
  }

  /** The process has ended. */
  stop(): void {
    this.#limitMs = null
    clearTimeout(this.#timer)
  }
}

export function toResult(exit: GuestExit, oom: boolean): ProcessResult {
  const { code, signal, timedOut, durationMs } = exit
  return {
    exitCode: timedOut ? 124 : signal ? 128 + signal : code,
    signal: signal ? (SIGNAL_NAMES.get(signal) ?? `SIG${signal}`) : null,
    timedOut,
    oom,
    durationMs,
  }
}

/** Undefined: it does not keep its sandbox awake. For a service the Keeper does that, also between two attempts. */
export function whyAwake(record: ProcessRecord): AwakeReason | undefined {
  const kind = kindOf(record)
  if (!record.keepAwake || kind === 'service') return undefined
  return { kind, id: (kind === 'terminal' && record.terminalId) || record.id }
}

export function toProcessInfo(record: ProcessRecord): ProcessInfo {
  const { startedAt, endedAt, cancelSignals: _, foreground: __, ...same } = record
  return {
    ...same,
    kind: kindOf(record),
    jobStatus: toJobStatus(record),
    startedAt: new Date(startedAt).toISOString(),
    endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
  }
}

export function toLost(record: ProcessRecord, reason: string): ProcessRecord {
  return { ...record, status: 'lost', outcome: 'failed', reason, endedAt: Date.now() }
}

/** Undefined if it has not ended, or was lost. */
export function endOf({ result, outcome }: ProcessRecord): ProcessEnd | undefined {
  return result && outcome ? { outcome, ...result } : undefined
}

function toJobStatus({ outcome, pid }: ProcessRecord): ProcessInfo['jobStatus'] {
  if (outcome === 'timeout') return 'failed'
  return outcome ?? (pid === null ? 'pending' : 'running')
}

/** Null: it was lost. */
function outcomeOf(result: ProcessResult | null, cancelSignals: number): Outcome {
  if (result?.exitCode === 0) return 'completed'
  if (result?.timedOut) return 'timeout'
  return result && isAskedFor(result, cancelSignals) ? 'cancelled' : 'failed'
}

/** Whether it was ended by a signal that a client sent, directly or by a handler that exits with 128 + signal. */
function isAskedFor({ exitCode }: ProcessResult, signals: number): boolean {
  const signal = exitCode - 128
  return signal > 0 && signal < 32 && (signals & (1 << signal)) !== 0
}
