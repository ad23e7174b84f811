// The processes of all sandboxes: exec, start, list, wait, signal, stdin, output, attach.

import { setImmediate, setTimeout } from 'node:timers/promises'
import {
  type CommandResult,
  DEFAULTS,
  type ExecParsed,
  type GetOutputParsed,
  IsletError,
  type ListProcessesParsed,
  type ProcessInfo,
  type ProcessOutput,
  type StartProcessParsed,
} from '@islet/contract'
import type { TerminalSize } from '../../guest/guest.ts'
import { ByteBuffer } from '../../lib/byte-buffer.ts'
import { untilAborted } from '../../lib/until-aborted.ts'
import { release, type Told } from '../output/kept-bytes.ts'
import { type Attachment, attachTo } from './attachment.ts'
import { Commands, withTimeout, writeFiles } from './commands.ts'
import { FOUND_AGAIN_MS, OutputReaders } from './readers.ts'
import { type TrackedProcess, toProcessInfo } from './tracked.ts'
import { type ProcessOwner, ProcessTracker, type TrackerOptions } from './tracker.ts'

/** Kept output that is read in one turn of the event loop. Each piece counts as some more bytes. */
const BYTES_AT_ONCE = 1024 * 1024
const PIECE_WORK_BYTES = 512

export class Processes {
  readonly commands: Commands
  readonly readers: OutputReaders
  readonly #tracker: ProcessTracker

  constructor(options: TrackerOptions) {
    this.#tracker = new ProcessTracker(options)
    this.commands = new Commands(this.#tracker)
    this.readers = new OutputReaders(this.#tracker)
  }

  /** Runs to the end. When `signal` aborts (the client went away) the command is killed. */
  async exec(
    sandboxId: string,
    input: ExecParsed,
    options: { signal?: AbortSignal } = {},
  ): Promise<Told<CommandResult>> {
    const { processId, result, output } = await this.commands.capture(sandboxId, input, options)
    return { processId, ...result, ...output.texts(input.encoding ?? 'utf8') }
  }

  start(sandboxId: string, input: StartProcessParsed): Promise<ProcessInfo> {
    return this.startOwned(sandboxId, input, {})
  }

  /** Throws if a process may not keep this much output. */
  assertKeeps(input: Pick<StartProcessParsed, 'keepOutput'>): void {
    this.#tracker.outputs.keepBytes(input)
  }

  /** For terminals and services: the record names the owner. */
  async startOwned(sandboxId: string, input: StartProcessParsed, owner: ProcessOwner): Promise<ProcessInfo> {
    const sandbox = await this.#tracker.running(sandboxId)
    await writeFiles(sandbox, input)
    const tracked = this.#tracker.prepare(sandbox, input, {
      ...owner,
      terminal: input.terminal !== undefined,
      keepAwake: input.keepAwake ?? input.terminal === undefined,
      maxRunAfterDisconnectMs: input.maxRunAfterDisconnect,
    })
    if (input.hold) tracked.hold()
    // Services and terminals have no default timeout; a job has that of a command.
    const isJob = owner.service === undefined && input.terminal === undefined
    const timed = isJob ? withTimeout(input, sandbox) : input
    await this.#tracker.spawn(sandbox, tracked, timed, { stdin: input.stdin ?? false, pty: input.terminal })
    return toProcessInfo(tracked.record)
  }

  list(sandboxId: string, query: ListProcessesParsed): Iterable<ProcessInfo> {
    const records = this.#tracker.list(sandboxId, { limit: 100, ...query })
    return { [Symbol.iterator]: () => Iterator.from(records).map(toProcessInfo) }
  }

  count(sandboxId: string, query: Pick<ListProcessesParsed, 'status' | 'kind'>): number {
    return this.#tracker.table.count(sandboxId, query)
  }

  /** Oldest first. */
  ofTerminal(terminalId: string): IteratorObject<ProcessInfo> {
    return Iterator.from(this.#tracker.ofTerminal(terminalId)).map(toProcessInfo)
  }

  async get(
    sandboxId: string,
    processId: string,
    options: { waitMs?: number; signal?: AbortSignal } = {},
  ): Promise<ProcessInfo> {
    const record = this.#tracker.record(sandboxId, processId)
    if (!options.waitMs || record.status !== 'running') return toProcessInfo(record)
    await waitFor((over) => this.#ended(sandboxId, processId, over), options.waitMs, options.signal)
    return toProcessInfo(this.#tracker.record(sandboxId, processId))
  }

  /** Waits until processes from before a restart were adopted. */
  async found(sandboxId: string, processId: string): Promise<ProcessInfo> {
    await this.#tracker.followed(sandboxId, processId)
    return toProcessInfo(this.#tracker.record(sandboxId, processId))
  }

  /** Waits for its end, without a deadline. */
  async waitEnd(sandboxId: string, processId: string, signal?: AbortSignal): Promise<ProcessInfo> {
    const tracked = await this.#tracker.followed(sandboxId, processId)
    if (tracked) await untilAborted(tracked.ended, signal)
    return toProcessInfo(this.#tracker.record(sandboxId, processId))
  }

  /** Waits until it has printed something or has ended, at most this long. The caller does not count as a client. */
  async firstOutput(sandboxId: string, processId: string, waitMs: number): Promise<void> {
    const tracked = await this.#tracker.followed(sandboxId, processId)
    if (!tracked || tracked.record.outputBytes > 0) return
    const printed = Promise.withResolvers<void>()
    const listener = { full: true, output: () => printed.resolve() }
    tracked.listeners.add(listener)
    await waitFor(() => Promise.race([printed.promise, tracked.ended]).then(() => {}), waitMs)
    tracked.listeners.delete(listener)
  }

  /** As `kill`, without waiting: in a suspended sandbox it takes effect on resume. */
  async cancel(sandboxId: string, processId: string): Promise<void> {
    const tracked = await this.#tracker.followed(sandboxId, processId)
    if (tracked) await this.#tracker.cancel(tracked)
  }

  async kill(sandboxId: string, processId: string): Promise<ProcessInfo> {
    const tracked = await this.#tracker.followed(sandboxId, processId)
    if (tracked) {
      await this.#tracker.kill(tracked)
      await tracked.ended
    }
    return toProcessInfo(this.#tracker.record(sandboxId, processId))
  }

  async signal(
    sandboxId: string,
    processId: string,
    signal: number,
    options: { group: boolean },
  ): Promise<void> {
    await this.#tracker.signal(await this.#live(sandboxId, processId), signal, options)
  }

  async writeStdin(
    sandboxId: string,
    processId: string,
    bytes: Uint8Array,
    options: { end: boolean },
  ): Promise<void> {
    const { guest } = await this.#live(sandboxId, processId)
    if (bytes.length > 0) await guest?.writeStdin(bytes)
    if (options.end) await guest?.endStdin()
  }

  async resize(sandboxId: string, processId: string, size: TerminalSize): Promise<void> {
    const { record } = await this.#live(sandboxId, processId)
    if (!record.terminal) throw new IsletError('invalid_state', `Process ${processId} has no terminal.`)
    const { machine } = await this.#tracker.running(sandboxId)
    await machine.guest.resize(processId, size)
  }

  async output(
    sandboxId: string,
    processId: string,
    { encoding = 'utf8', maxBytes = DEFAULTS.execOutputBytes }: GetOutputParsed = {},
  ): Promise<Told<ProcessOutput>> {
    const record = this.#tracker.record(sandboxId, processId)
    const { outputs } = this.#tracker
    const kept = outputs.open(record, maxBytes)
    const found = { stdout: outputs.keep(sandboxId), stderr: outputs.keep(sandboxId) }
    let work = 0
    for (const { channel, bytes } of kept ?? []) {
      if (!found[channel].append(bytes)) {
        release(found)
        if (found[channel].isDiskFull) throw new IsletError('server_disk_full')
        throw new IsletError('too_many_requests', 'Too much output of this sandbox waits to be read.')
      }
      work += PIECE_WORK_BYTES + bytes.length
      if (work < BYTES_AT_ONCE) continue
      // Let other requests run.
      work = 0
      await setImmediate()
    }
    const outputBytes = kept?.end ?? record.outputBytes
    const droppedBytes = outputBytes - found.stdout.length - found.stderr.length
    return {
      stdout: found.stdout.text(encoding),
      stderr: found.stderr.text(encoding),
      truncated: droppedBytes > 0,
      droppedBytes,
      outputBytes,
    }
  }

  /** The end of its output, as text; empty for a process that never ran. */
  tail(sandboxId: string, processId: string, maxBytes: number): string {
    const record = this.#tracker.table.get(sandboxId, processId)
    const all = new ByteBuffer()
    for (const piece of (record && this.#tracker.outputs.open(record, maxBytes)) ?? [])
      all.append(piece.bytes)
    const { bytes } = all
    // Do not begin inside a character.
    const start = bytes.subarray(0, 3).findIndex((byte) => (byte & 0xc0) !== 0x80)
    return bytes.subarray(Math.max(start, 0)).toString()
  }

  async attach(sandboxId: string, processId: string, options: { replay: boolean }): Promise<Attachment> {
    const followed = await this.#tracker.followed(sandboxId, processId)
    const tracked = followed ?? this.#tracker.ended(this.#tracker.record(sandboxId, processId))
    // No await between opening the kept output and subscribing: nothing is missed, nothing comes twice.
    const { record } = tracked
    const kept = options.replay ? this.#tracker.outputs.open(record) : undefined
    const droppedBytes = options.replay ? (kept?.start ?? record.outputBytes) : 0
    return attachTo(
      tracked,
      { kept, droppedBytes },
      {
        resize: (size) => this.resize(sandboxId, processId, size),
        signal: (signal) => this.signal(sandboxId, processId, signal, { group: true }),
      },
    )
  }

  /** Before shutdown: lost clients do not count as having left, and calls that wait in suspended sandboxes are answered. */
  leave(): void {
    this.#tracker.leave()
    this.commands.leave()
  }

  /** The next server removes the output of sandboxes that are stopped already. */
  closeOutputs(): void {
    this.#tracker.outputs.close()
  }

  /** Processes keep running; the next server follows them. */
  close(): void {
    this.#tracker.close()
  }

  async #ended(sandboxId: string, processId: string, over: AbortSignal): Promise<void> {
    while (!over.aborted && this.#tracker.record(sandboxId, processId).status === 'running') {
      const tracked = await this.#tracker.followed(sandboxId, processId)
      if (tracked) return void (await tracked.ended)
      await setTimeout(FOUND_AGAIN_MS, undefined, { ref: false })
    }
  }

  async #live(sandboxId: string, processId: string): Promise<TrackedProcess> {
    const tracked = await this.#tracker.followed(sandboxId, processId)
    if (!tracked) throw new IsletError('invalid_state', `Process ${processId} has ended.`)
    return tracked
  }
}

/** `over` aborts when the wait is over. */
async function waitFor(
  ended: (over: AbortSignal) => Promise<void>,
  waitMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const over = new AbortController()
  const timer = setTimeout(waitMs, undefined, { signal: over.signal }).catch(() => {})
  try {
    await untilAborted(Promise.race([ended(over.signal), timer]), signal)
  } finally {
    over.abort()
  }
}
