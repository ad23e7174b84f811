// The processes of one guest that the server follows, by id, and the requests about them.
import { IsletError } from '@islet/contract'
import type { Connection } from '../connection.ts'
import { type About, sandboxLost } from '../errors.ts'
import type { GuestProcess, GuestProcessState, OutputSink, SpawnSpec, TerminalSize } from '../guest.ts'
import { MAX_PROCESSES, type SpawnFields } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { checkId, checkNumber, checkSize, checkSpawn } from '../requests/check.ts'
import { toProcess } from '../requests/records.ts'
import { call, nothing } from '../requests/request.ts'
import { Forgotten, forget } from './forgotten.ts'
import { Process } from './process.ts'

export interface ProcessOptions {
  id: string
  about: About
  sink: OutputSink
  /** Absent: the process runs already and is attached to. */
  spawn?: SpawnFields
  offset?: number
}

const MAX_SIGNAL = 64

export class GuestProcesses {
  readonly presence: Presence
  readonly #processes = new Map<string, Process>()
  readonly #forgotten = new Forgotten()

  constructor(presence: Presence) {
    this.presence = presence
  }

  async spawn(spec: SpawnSpec, sink: OutputSink): Promise<GuestProcess> {
    const env = Object.entries(spec.env).map(([name, value]) => `${name}=${value}`)
    checkSpawn(spec, env)
    const spawn = {
      id: spec.id,
      argv: spec.argv,
      env,
      cwd: spec.cwd,
      user: spec.user,
      timeoutMs: spec.timeoutMs,
      stdin: spec.stdin ? 1 : 0,
      pty: spec.pty,
      endsSession: spec.endsSession ? 1 : 0,
      quietMs: spec.quietMs,
    } as unknown as SpawnFields
    const about = { command: spec.argv[0]!, cwd: spec.cwd, user: spec.user, processId: spec.id }
    if (this.#processes.has(spec.id))
      throw new IsletError('conflict', `A process with the id ${spec.id} exists already.`)
    return this.#start({ id: spec.id, about, sink, spawn })
  }

  async attach(id: string, offset: number, sink: OutputSink): Promise<GuestProcess> {
    checkId(id)
    checkNumber('offset', offset, Number.MAX_SAFE_INTEGER)
    this.#processes.get(id)?.detach(new IsletError('conflict', 'Another reader attached to this process.'))
    return this.#start({ id, about: { processId: id }, sink, offset })
  }

  list(): Promise<GuestProcessState[]> {
    const request = { name: 'PROCESSES', fields: {}, about: {}, again: true } as const
    return call(this.presence, request, (ok) =>
      (ok.process ?? []).map((record) => {
        const { id, pid, running, outputStart, outputEnd, stdinOffset } = toProcess(record)
        return { id, pid, running, outputStart, outputEnd, stdinOffset }
      }),
    )
  }

  async signal(id: string, signal: number, options: { group: boolean }): Promise<void> {
    checkId(id)
    if (signal === 0) throw new IsletError('bad_request', 'There is no signal 0.')
    checkNumber('signal', signal, MAX_SIGNAL)
    const fields = { id, signal, group: options.group ? 1 : 0 }
    return call(this.presence, { name: 'SIGNAL', fields, about: { processId: id } }, nothing)
  }

  async resize(id: string, size: TerminalSize): Promise<void> {
    checkId(id)
    checkSize(size)
    const fields = { id, size: { cols: size.cols, rows: size.rows } }
    return call(this.presence, { name: 'RESIZE', fields, about: { processId: id } }, nothing)
  }

  async killAll(): Promise<void> {
    const before = [...this.#processes.values()].filter((process) => !process.fresh)
    await call(this.presence, { name: 'KILL_ALL', fields: {}, about: {} }, nothing)
    for (const process of before) {
      process.killed()
      this.onGone(process)
    }
  }

  onConnect(connection: Connection, replaced: boolean): void {
    if (replaced) {
      this.#forgotten.clear()
      for (const process of [...this.#processes.values()])
        if (!process.fresh) process.fail(sandboxLost('its guest was replaced by a new one'))
    }
    this.#forgotten.onConnect(connection)
    for (const process of [...this.#processes.values()]) process.start(connection)
  }

  onLost(error: IsletError): void {
    this.#forgotten.clear()
    for (const process of [...this.#processes.values()]) process.fail(error)
  }

  /** The link no longer follows the process. */
  onGone(process: Process): void {
    if (this.#processes.get(process.id) === process) this.#processes.delete(process.id)
  }

  /** The guest is to forget a process whose output was taken up to `offset`. `connection`: where FORGET was sent already. */
  onForgotten(id: string, offset: number, connection: Connection | undefined): void {
    const current = this.presence.connection
    if (!connection && current) forget(current, id, offset)
    this.#forgotten.add(id, offset, connection ?? current)
  }

  async #start(options: ProcessOptions): Promise<GuestProcess> {
    if (this.#processes.size >= MAX_PROCESSES)
      throw new IsletError('limit_exceeded', `The sandbox has ${MAX_PROCESSES} processes already.`)
    this.#forgotten.delete(options.id)
    const process = new Process(this, options)
    this.#processes.set(options.id, process)
    const { connection } = this.presence
    if (!connection) this.presence.connected().catch((error) => process.fresh && process.fail(error))
    else if (connection.out.congested) {
      await connection.out.drained()
      if (this.presence.connection) process.start(this.presence.connection)
    } else process.start(connection)
    return process.started
  }
}
