// One process, across connections:
//
//     asked ──SPAWNED or ATTACHED──> running ──EXITED, sink has all──> settled ──forget──> gone
//       ^                              |
//       '──── connection lost: ATTACH at the sink's offset on the next one; SPAWN again if it never arrived
import { IsletError } from '@islet/contract'
import type { Frame } from '../../wire/frames.ts'
import type { Connection, StreamOwner } from '../connection.ts'
import { decode } from '../decode.ts'
import { type About, guestError, Violation } from '../errors.ts'
import type { GuestExit, GuestProcess } from '../guest.ts'
import {
  type AttachedFields,
  ERROR_KIND,
  type ErrorFields,
  type ExitedFields,
  MESSAGE,
  type SpawnFields,
} from '../messages.gen.ts'
import { toExit, toProcess } from '../requests/records.ts'
import type { GuestProcesses, ProcessOptions } from './guest-processes.ts'
import { Output } from './output.ts'
import { Stdin } from './stdin.ts'

/** Acknowledged at once from this many bytes on, else at the end of the turn. */
const ACK_BYTES = 64 * 1024
/** Output that may still come on the stream of a forgotten process. */
const LATE_BYTES = 512 * 1024
const SIGKILL = 9

export class Process implements GuestProcess, StreamOwner {
  readonly id: string
  readonly limited = false
  pid = 0
  readonly exited: Promise<GuestExit>
  readonly #owner: GuestProcesses
  readonly #about: About
  readonly #spawn: SpawnFields | undefined
  readonly #output: Output
  readonly #stdin = new Stdin()
  readonly #started = Promise.withResolvers<GuestProcess>()
  readonly #ended = Promise.withResolvers<GuestExit>()
  readonly #startedAt = performance.now()
  #connection: Connection | undefined
  #stream = 0
  #asked: 'SPAWN' | 'ATTACH' | undefined
  #everAsked = false
  #running = false
  #everRan = false
  #exit: GuestExit | undefined
  #settled = false
  #forgotten = false

  constructor(owner: GuestProcesses, options: ProcessOptions) {
    this.id = options.id
    this.exited = this.#ended.promise
    this.exited.catch(() => {})
    this.#started.promise.catch(() => {})
    this.#owner = owner
    this.#about = options.about
    this.#spawn = options.spawn
    this.#output = new Output(options.sink, options.offset ?? 0, {
      onTaken: () => this.#onTaken(),
      onIdle: () => this.#settle(),
      onSinkFailed: (error) => this.detach(error),
    })
  }

  /** Resolves once it runs; rejects when it never did. */
  get started(): Promise<GuestProcess> {
    return this.#started.promise
  }

  /** Neither SPAWN nor ATTACH was sent yet. */
  get fresh(): boolean {
    return !this.#everAsked
  }

  /** Spawns or attaches on this connection, unless the process has settled or the sink is being written to. */
  start(connection: Connection): void {
    if (this.#settled || this.#connection || this.#output.busy) return
    this.#ask(connection, this.#spawn && !this.#everAsked ? 'SPAWN' : 'ATTACH')
  }

  writeStdin(bytes: Uint8Array): Promise<void> {
    if (this.#spawn && !this.#spawn.stdin && !this.#spawn.pty)
      return Promise.reject(new IsletError('bad_request', 'The process was started without stdin.'))
    return this.#stdin.write(bytes)
  }

  endStdin(): Promise<void> {
    return this.#stdin.end()
  }

  forget(): void {
    if (this.#forgotten) return
    this.#forgotten = true
    // FORGET kills a process that runs, so it is not delayed.
    if (this.#exit) this.#connection?.out.sendUnhurried('FORGET', this.#stream, {})
    else this.#connection?.out.send('FORGET', this.#stream, {})
    this.#owner.onForgotten(this.id, this.#output.taken, this.#connection)
    this.#endStream(LATE_BYTES)
    this.killed()
    this.#owner.onGone(this)
  }

  /** The process was killed by FORGET or KILL_ALL, which send no EXITED. */
  killed(): void {
    if (this.#settled) return
    const outputEnd = this.#output.taken
    const durationMs = performance.now() - this.#startedAt
    this.#finish()
    this.#started.reject(new IsletError('sandbox_lost', 'The process was killed before it ran.'))
    this.#ended.resolve({ code: 0, signal: SIGKILL, timedOut: false, outputEnd, durationMs })
  }

  /** Stops reading its output; the process runs on. */
  detach(error: unknown): void {
    if (this.#connection) {
      this.#connection.reset(this.#stream)
      this.#connection = undefined
    }
    this.fail(error)
  }

  fail(error: unknown): void {
    this.#endStream()
    if (!this.#settled) {
      this.#finish()
      this.#started.reject(error)
      this.#ended.reject(error)
    }
    this.#owner.onGone(this)
  }

  onLost(): void {
    this.#connection = undefined
    this.#running = false
    this.#exit = undefined
    this.#stdin.detach()
    this.#output.drop()
  }

  onFrame(frame: Frame): void {
    const { type, payload } = frame
    if (type === MESSAGE.ERROR) this.#onError(decode('ERROR', payload))
    else if (!this.#running) this.#onAnswer(type, payload)
    else if (this.#exit) throw new Violation(`a message of type ${type} after EXITED`)
    else if (type === MESSAGE.OUTPUT) this.#output.receive(frame)
    else if (type === MESSAGE.EXITED) this.#onExited(decode('EXITED', payload))
    else if (type === MESSAGE.STDIN_WINDOW) this.#stdin.onLimit(decode('STDIN_WINDOW', payload).limit ?? 0)
    else throw new Violation(`a message of type ${type} on the stream of a process`)
  }

  #ask(connection: Connection, how: 'SPAWN' | 'ATTACH'): void {
    try {
      this.#stream = connection.open(this)
      this.#connection = connection
      this.#asked = how
      this.#everAsked = true
      if (how === 'SPAWN') connection.out.send('SPAWN', this.#stream, this.#spawn!)
      else connection.out.send('ATTACH', this.#stream, { id: this.id, offset: this.#output.taken })
    } catch (error) {
      this.fail(error)
    }
  }

  #onAnswer(type: number, payload: Buffer): void {
    if (type === MESSAGE.SPAWNED && this.#asked === 'SPAWN') {
      this.pid = decode('SPAWNED', payload).pid ?? 0
      this.#stdin.open(this.#connection!, this.#stream)
    } else if (type === MESSAGE.ATTACHED && this.#asked === 'ATTACH')
      this.#onAttached(decode('ATTACHED', payload))
    else throw new Violation(`a message of type ${type} in answer to ${this.#asked}`)
    this.#running = true
    if (this.#everRan) return
    this.#everRan = true
    this.#owner.presence.succeeded()
    this.#started.resolve(this)
  }

  #onAttached(fields: AttachedFields): void {
    const state = toProcess(fields.process)
    const { taken } = this.#output
    if (state.id !== this.id || taken < state.outputStart || taken > state.outputEnd)
      throw new Violation('ATTACHED to another process or offset')
    this.pid = state.pid
    this.#output.rewind()
    const adopted = !this.#spawn && !this.#stdin.opened
    if (adopted) this.#stdin.adopt(this.#connection!, this.#stream, state.stdinOffset, state.stdinEnded)
    else this.#stdin.resume(this.#connection!, this.#stream, state.stdinOffset, state.stdinEnded)
  }

  #onError(fields: ErrorFields): void {
    const connection = this.#connection!
    this.#endStream()
    const neverRan = this.#asked === 'ATTACH' && this.#spawn && !this.#everRan
    if (neverRan && fields.kind === ERROR_KIND.NO_PROCESS) this.#ask(connection, 'SPAWN')
    else this.fail(guestError(fields, this.#about))
  }

  #onExited(fields: ExitedFields): void {
    const exit = toExit(fields)
    if (exit.outputEnd !== this.#output.received) throw new Violation('an exit before the last output')
    this.#exit = exit
    this.#stdin.close()
    if (this.#output.idle) this.#settle()
  }

  #settle(): void {
    const exit = this.#exit
    if (!exit || this.#settled) return
    this.#finish()
    this.#ended.resolve(exit)
  }

  #onTaken(): void {
    const connection = this.#connection
    if (!connection) {
      if (this.#owner.presence.connection) this.start(this.#owner.presence.connection)
      return
    }
    if (this.#output.taken - this.#output.acked >= ACK_BYTES && !connection.out.congested) this.#acknowledge()
    else connection.out.plan(this.#acknowledge)
  }

  readonly #acknowledge = (): void => {
    if (!this.#connection || this.#output.acked === this.#output.taken) return
    this.#output.acked = this.#output.taken
    this.#connection.out.send('ACK', this.#stream, { offset: this.#output.taken })
  }

  #finish(): void {
    this.#settled = true
    this.#stdin.close()
  }

  #endStream(lateBytes?: number): void {
    this.#connection?.end(this.#stream, lateBytes)
    this.#connection = undefined
  }
}
