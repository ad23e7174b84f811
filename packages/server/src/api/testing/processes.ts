// Two programs: `echo TEXT` prints and ends, `cat` repeats its stdin until that ends. `hang` never ends, `fault` is a bug.
import { once } from 'node:events'
import {
  type ExecParsed,
  type ExecResult,
  IsletError,
  newId,
  type ProcessInfo,
  type ProcessOutput,
  type RunParsed,
  type RunResult,
  type StartProcessParsed,
} from '@islet/contract'
import type { AttachEvent, Attachment, ProcessService } from '../../data/data.ts'
import type { TerminalSize } from '../../guest/guest.ts'
import type { MemoryControl } from './control.ts'

const DONE = { exitCode: 0, signal: null, timedOut: false, oom: false, durationMs: 1 }

interface Running {
  info: ProcessInfo
  events: AttachEvent[]
  wake: Set<() => void>
  sizes: TerminalSize[]
  signals: number[]
}

export class MemoryProcesses implements ProcessService {
  readonly #control: MemoryControl
  readonly running = new Map<string, Running>()
  readonly execs: ExecParsed[] = []
  aborted = 0
  /** False: the process has ended, but its clients do not know yet. */
  isTakingInput = true
  attached = 0
  /** How long stdin writes wait; set to make the process a slow reader. */
  stdinGate: Promise<void> = Promise.resolve()

  constructor(control: MemoryControl) {
    this.#control = control
  }

  async exec(
    sandboxId: string,
    input: ExecParsed,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ExecResult> {
    this.#control.get(sandboxId)
    this.execs.push(input)
    if (input.command === 'fault') throw new Error('a secret inside of the server')
    if (input.command === 'nothing') throw new IsletError('command_not_found')
    if (input.command === 'hang') {
      await once(signal!, 'abort')
      this.aborted++
      throw signal!.reason
    }
    const stdout = String(input.command).replace(/^echo /, '')
    return { processId: newId('process'), ...DONE, stdout, stderr: '', truncated: false }
  }

  async run(input: RunParsed, options: { signal?: AbortSignal } = {}): Promise<RunResult> {
    const { id } = await this.#control.create(input)
    return { ...(await this.exec(id, { command: input.command }, options)), sandboxId: id }
  }

  async start(sandboxId: string, input: StartProcessParsed): Promise<ProcessInfo> {
    this.#control.get(sandboxId)
    const info: ProcessInfo = {
      id: newId('process'),
      sandboxId,
      command: input.command,
      status: 'running',
      pid: 7,
      cwd: '/',
      user: 'user',
      terminal: input.terminal !== undefined,
      startedAt: new Date().toISOString(),
      endedAt: null,
      outputBytes: 0,
      result: null,
    }
    const running: Running = { info, events: [], wake: new Set(), sizes: [], signals: [] }
    this.running.set(info.id, running)
    if (String(input.command).startsWith('echo ')) {
      this.print(info.id, Buffer.from(String(input.command).slice(5)))
      this.end(info.id)
    }
    return info
  }

  list(sandboxId: string): ProcessInfo[] {
    this.#control.get(sandboxId)
    return [...this.running.values()].map(({ info }) => info)
  }

  async get(sandboxId: string, processId: string): Promise<ProcessInfo> {
    return this.#find(sandboxId, processId).info
  }

  async kill(sandboxId: string, processId: string): Promise<ProcessInfo> {
    const { info } = this.#find(sandboxId, processId)
    this.end(processId)
    return info
  }

  async signal(sandboxId: string, processId: string, signal: number): Promise<void> {
    this.#find(sandboxId, processId).signals.push(signal)
  }

  async writeStdin(
    sandboxId: string,
    processId: string,
    bytes: Uint8Array,
    { end }: { end: boolean },
  ): Promise<void> {
    this.#find(sandboxId, processId)
    this.#takeInput()
    await this.stdinGate
    if (bytes.length > 0) this.print(processId, Buffer.from(bytes))
    if (end) this.end(processId)
  }

  async resize(sandboxId: string, processId: string, size: TerminalSize): Promise<void> {
    this.#takeInput()
    const running = this.#find(sandboxId, processId)
    if (!running.info.terminal) throw new IsletError('invalid_state', 'It has no terminal.')
    running.sizes.push(size)
  }

  async output(sandboxId: string, processId: string, encoding: 'utf8' | 'base64'): Promise<ProcessOutput> {
    const { events, info } = this.#find(sandboxId, processId)
    const all = Buffer.concat(events.flatMap((event) => (event.type === 'output' ? [event.bytes] : [])))
    return { stdout: all.toString(encoding), stderr: '', truncated: false, outputBytes: info.outputBytes }
  }

  async attach(sandboxId: string, processId: string, { replay }: { replay: boolean }): Promise<Attachment> {
    const running = this.#find(sandboxId, processId)
    this.attached++
    const live = running.events.filter((event) => event.type !== 'exit').length
    let at = replay ? 0 : live
    let isClosed = false
    let next = () => {}
    const events = async function* (): AsyncGenerator<AttachEvent> {
      let replaying = replay
      for (;;) {
        if (replaying && at >= live) {
          replaying = false
          yield { type: 'replay-end' }
        }
        if (isClosed) return
        const event = running.events[at]
        if (event) {
          at++
          yield event
        } else {
          await new Promise<void>((resolve) => {
            next = resolve
            running.wake.add(resolve)
          })
        }
      }
    }
    return {
      process: running.info,
      truncated: false,
      [Symbol.asyncIterator]: events,
      writeStdin: (bytes) => this.writeStdin(sandboxId, processId, bytes, { end: false }),
      endStdin: () => this.writeStdin(sandboxId, processId, new Uint8Array(), { end: true }),
      resize: (size) => this.resize(sandboxId, processId, size),
      signal: (signal) => this.signal(sandboxId, processId, signal),
      close: () => {
        if (!isClosed) this.attached--
        isClosed = true
        next()
      },
    }
  }

  print(processId: string, bytes: Buffer, channel: 'stdout' | 'stderr' = 'stdout'): void {
    const running = this.running.get(processId)!
    running.info.outputBytes += bytes.length
    this.#emit(running, { type: 'output', channel, bytes })
  }

  end(processId: string): void {
    const running = this.running.get(processId)!
    running.info.status = 'exited'
    running.info.result = DONE
    this.#emit(running, { type: 'exit', result: DONE })
  }

  #emit(running: Running, event: AttachEvent): void {
    running.events.push(event)
    for (const wake of running.wake) wake()
    running.wake.clear()
  }

  #takeInput(): void {
    if (!this.isTakingInput) throw new IsletError('process_not_found')
  }

  #find(sandboxId: string, processId: string): Running {
    this.#control.get(sandboxId)
    const running = this.running.get(processId)
    if (!running) throw new IsletError('process_not_found')
    return running
  }
}
