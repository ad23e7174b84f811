// The processes of all sandboxes, as callers see them: run, start, list, wait, signal, write to, read from, attach to.

import { setImmediate, setTimeout } from 'node:timers/promises'
import {
  type CommandResult,
  DEFAULTS,
  type ExecParsed,
  type GetOutputParsed,
  IsletError,
  type ProcessInfo,
  type ProcessOutput,
  type StartProcessParsed,
} from '@islet/contract'
import type { RunningSandbox } from '../../control/fleet.ts'
import type { Machine } from '../../control/machine.ts'
import type { GuestProcess, TerminalSize } from '../../guest/guest.ts'
import { ByteBuffer } from '../../lib/byte-buffer.ts'
import { release, type Told } from '../output/kept-bytes.ts'
import { type Attachment, attachTo } from './attachment.ts'
import { type CollectedOutput, collectOutput } from './collect.ts'
import { type ProcessResult, type TrackedProcess, toProcessInfo } from './tracked.ts'
import { ProcessTracker, type TrackerOptions } from './tracker.ts'

/** One that stands still since before this server has to be found again first; that is looked for so often. */
const FOUND_AGAIN_MS = 200
/** Most commands are short: that one has begun is told together with its end, unless that takes longer. */
const QUIET_MS = 5
/** Of kept output that is read for one answer: then others have their turn. A piece costs as much as so many bytes. */
const BYTES_AT_ONCE = 1024 * 1024
const PIECE_WORK_BYTES = 512

export interface ProcessOwner {
  terminalId?: string
  service?: string
  /** Its end is waited for. */
  foreground?: boolean
}

export class Processes {
  readonly #tracker: ProcessTracker
  /** Clients that wait for the end of a command. */
  readonly #waiting = new Set<{ machine: Machine; giveUp(): void }>()

  constructor(options: TrackerOptions) {
    this.#tracker = new ProcessTracker(options)
  }

  /** Runs to the end. When `signal` aborts (the client went away) the command is killed. */
  async exec(
    sandboxId: string,
    input: ExecParsed,
    options: { signal?: AbortSignal } = {},
  ): Promise<Told<CommandResult>> {
    const { processId, result, output } = await this.capture(sandboxId, input, options)
    return { processId, ...result, ...output.texts(input.encoding ?? 'utf8') }
  }

  /** As `exec`, for callers that want the output in another form, or know the id beforehand. They dispose of the output. */
  async capture(
    sandboxId: string,
    input: ExecParsed,
    options: { processId?: string; signal?: AbortSignal; together?: boolean } = {},
  ): Promise<{ processId: string; result: ProcessResult; output: CollectedOutput }> {
    const sandbox = await this.#tracker.running(sandboxId)
    options.signal?.throwIfAborted()
    const { processId } = options
    const prepare = { id: processId, terminal: false, foreground: true, keepAwake: true }
    const tracked = this.#tracker.prepare(sandbox, input, prepare)
    const output = collectOutput(input.maxOutputBytes ?? DEFAULTS.execOutputBytes, {
      together: options.together,
      bytes: () => this.#tracker.outputs.keep(sandboxId),
    })
    try {
      return await this.#collect(sandbox, tracked, { input, output, signal: options.signal })
    } catch (error) {
      release(output)
      throw error
    }
  }

  async #collect(
    sandbox: RunningSandbox,
    tracked: TrackedProcess,
    { input, output, ...options }: { input: ExecParsed; output: CollectedOutput; signal?: AbortSignal },
  ): Promise<{ processId: string; result: ProcessResult; output: CollectedOutput }> {
    tracked.listeners.add(output)
    const timed = withTimeout(input, sandbox)
    const stdin = input.stdin !== undefined
    const io = { stdin, quietMs: stdin ? undefined : QUIET_MS }
    const process = await this.#tracker.spawn(sandbox, tracked, timed, io)
    const kill = () => void this.#tracker.cancel(tracked)
    const left = Promise.withResolvers<never>()
    left.promise.catch(() => {})
    const waiting = { machine: sandbox.machine, giveUp: () => left.reject(leftStill()) }
    if (options.signal) this.#waiting.add(waiting)
    options.signal?.addEventListener('abort', kill, { once: true })
    if (options.signal?.aborted) kill()
    try {
      if (input.stdin !== undefined)
        void feed(process, Buffer.from(input.stdin, input.stdinEncoding ?? 'utf8'))
      const { result, id } = await Promise.race([tracked.ended, left.promise])
      options.signal?.throwIfAborted()
      if (!result) throw new IsletError('sandbox_lost', tracked.lostBecause)
      return { processId: id, result, output }
    } finally {
      this.#waiting.delete(waiting)
      options.signal?.removeEventListener('abort', kill)
    }
  }

  start(sandboxId: string, input: StartProcessParsed): Promise<ProcessInfo> {
    return this.startOwned(sandboxId, input, {})
  }

  /** Refuses what no process may ask for, before it is written down. */
  assertKeeps(input: Pick<StartProcessParsed, 'keepOutput'>): void {
    this.#tracker.outputs.keepBytes(input)
  }

  /** For what manages processes of its own: the terminal or service it belongs to is remembered with it. */
  async startOwned(sandboxId: string, input: StartProcessParsed, owner: ProcessOwner): Promise<ProcessInfo> {
    const sandbox = await this.#tracker.running(sandboxId)
    const tracked = this.#tracker.prepare(sandbox, input, {
      ...owner,
      terminal: input.terminal !== undefined,
      keepAwake: input.keepAwake ?? input.terminal === undefined,
      maxRunAfterDisconnectMs: input.maxRunAfterDisconnect,
    })
    if (input.hold) tracked.hold()
    // Services and terminals are meant to go on; a job has the limits of a command.
    const isJob = owner.service === undefined && input.terminal === undefined
    const timed = isJob ? withTimeout(input, sandbox) : input
    await this.#tracker.spawn(sandbox, tracked, timed, { stdin: input.stdin ?? false, pty: input.terminal })
    return toProcessInfo(tracked.record)
  }

  list(sandboxId: string, query: { status?: ProcessInfo['status']; limit?: number }): Iterable<ProcessInfo> {
    const records = this.#tracker.list(sandboxId, { limit: 100, ...query })
    return { [Symbol.iterator]: () => Iterator.from(records).map(toProcessInfo) }
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

  /** As it is once the processes of before a restart were found again, however long that takes. */
  async found(sandboxId: string, processId: string): Promise<ProcessInfo> {
    await this.#tracker.followed(sandboxId, processId)
    return toProcessInfo(this.#tracker.record(sandboxId, processId))
  }

  /** Its end, however long that takes. */
  async waitEnd(sandboxId: string, processId: string, signal?: AbortSignal): Promise<ProcessInfo> {
    const tracked = await this.#tracker.followed(sandboxId, processId)
    if (tracked) await untilAborted(tracked.ended, signal)
    return toProcessInfo(this.#tracker.record(sandboxId, processId))
  }

  /** As `kill`, for one that nobody waits for any more. */
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
      // Others are served meanwhile.
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

  /** The end of all it has printed, as text. */
  tail(sandboxId: string, processId: string, maxBytes: number): string {
    const all = new ByteBuffer()
    const record = this.#tracker.record(sandboxId, processId)
    for (const piece of this.#tracker.outputs.open(record, maxBytes) ?? []) all.append(piece.bytes)
    const { bytes } = all
    // Not from the midst of a character.
    const start = bytes.subarray(0, 3).findIndex((byte) => (byte & 0xc0) !== 0x80)
    return bytes.subarray(Math.max(start, 0)).toString()
  }

  async attach(sandboxId: string, processId: string, options: { replay: boolean }): Promise<Attachment> {
    const followed = await this.#tracker.followed(sandboxId, processId)
    const tracked = followed ?? this.#tracker.ended(this.#tracker.record(sandboxId, processId))
    // Read and subscribe without a pause between them: nothing is missed, nothing comes twice.
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

  /** The server is about to drop its clients: they have not left. What stands still does not end meanwhile. */
  leave(): void {
    this.#tracker.leave()
    for (const { machine, giveUp } of this.#waiting) if (machine.suspended) giveUp()
  }

  /** Processes go on; the next server follows them. */
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

/** Nobody should run it again: it is there, and will go on. */
const leftStill = () =>
  new IsletError('sandbox_lost', 'The server is shutting down, and the sandbox stands still.', {
    hint: 'The command goes on when the sandbox does; it is in the list of its processes.',
  })

/** What the sandbox says for commands that name no timeout; 0: none. */
function withTimeout<Input extends { timeout?: number }>(input: Input, { record }: RunningSandbox): Input {
  return { ...input, timeout: input.timeout ?? record.timeouts.executionMs }
}

async function feed(process: GuestProcess, bytes: Buffer): Promise<void> {
  try {
    await process.writeStdin(bytes)
    await process.endStdin()
  } catch {
    // The program ended without reading all of it; its result says how.
  }
}

/** `over`: nobody waits any more. */
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

async function untilAborted(promise: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    await Promise.race([promise, aborted.promise])
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
