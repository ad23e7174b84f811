// DIAL: OPENED, then DATA and END in both directions, as a Duplex. Each direction ends by itself.

import { Duplex } from 'node:stream'
import type { Frame } from '../../wire/frames.ts'
import type { Connection } from '../connection.ts'
import { connectionLost } from '../errors.ts'
import { MESSAGE } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { Exchange, type Request } from '../requests/request.ts'
import { Inflow } from '../streams/inflow.ts'
import { Outflow } from '../streams/outflow.ts'
import type { Dials, Feeder } from './dials.ts'

/** Bytes in the buffer of the Duplex, which the window does not count. */
const BUFFER_BYTES = 16 * 1024
/** When the reader takes longer than this for a piece, the next pieces are smaller. */
const SLOW_MS = 1
const MIN_PIECE = 4 * 1024
const MAX_PIECE = 64 * 1024

interface DialRequest {
  port: number
  host?: '127.0.0.1' | '::1' | undefined
  signal?: AbortSignal | undefined
}

/** `dials`: the dialed connections of the same sandbox. */
export function dial(
  presence: Presence,
  dials: Dials,
  { port, host: name, signal }: DialRequest,
): Promise<Duplex> {
  const inflow = new Inflow(() => dials.window())
  const fields = { port, host: name, window: inflow.limit }
  return new Dial(presence, { name: 'DIAL', fields, about: { port }, signal }, dials, inflow).run()
}

class Dial extends Exchange<Duplex> {
  readonly #dials: Dials
  readonly #inflow: Inflow
  #socket: DialSocket | undefined

  constructor(presence: Presence, request: Request<'DIAL'>, dials: Dials, inflow: Inflow) {
    super(presence, request)
    this.#dials = dials
    this.#inflow = inflow
  }

  protected override onMessage(frame: Frame): void {
    const socket = this.#socket
    if (frame.type === MESSAGE.OPENED && !socket) {
      this.#socket = new DialSocket(this.connection!, this.stream, {
        dials: this.#dials,
        inflow: this.#inflow,
        leave: () => this.#leave(),
        finish: () => this.finish(),
      })
      this.resolve(this.#socket)
    } else if (frame.type === MESSAGE.DATA && socket && !socket.peerEnded) socket.onData(frame)
    else if (frame.type === MESSAGE.END && socket && !socket.peerEnded) socket.onEnd()
    else if (frame.type === MESSAGE.WINDOW && socket) socket.outflow.onWindow(frame)
    else this.unexpected(frame)
  }

  protected override onFail(error: unknown): void {
    this.#socket?.destroy(error instanceof Error ? error : connectionLost())
  }

  #leave(): void {
    this.connection?.reset(this.stream)
    this.finish()
  }
}

interface DialSocketOptions {
  dials: Dials
  inflow: Inflow
  /** Resets the stream before both sides have ended. */
  leave(): void
  /** Both sides have ended. */
  finish(): void
}

class DialSocket extends Duplex implements Feeder {
  readonly outflow: Outflow
  peerEnded = false
  readonly #connection: Connection
  readonly #stream: number
  readonly #options: DialSocketOptions
  #ended = false
  #wanted = false
  #pieceBytes = BUFFER_BYTES

  constructor(connection: Connection, stream: number, options: DialSocketOptions) {
    super({ allowHalfOpen: true, emitClose: true, readableHighWaterMark: BUFFER_BYTES })
    this.outflow = new Outflow(connection, stream)
    this.#connection = connection
    this.#stream = stream
    this.#options = options
    options.dials.opened()
    // The guest can break the stream before the caller listens for errors: that must not crash the server.
    this.on('error', () => {})
  }

  onData(frame: Frame): void {
    const { dials, inflow } = this.#options
    inflow.count(frame)
    if (!dials.queued(inflow.queue.push(frame.payload))) this.destroy(new Error('too much waits to be read'))
    else if (this.#wanted) dials.ready(this, { now: true })
  }

  onEnd(): void {
    this.peerEnded = true
    if (this.#wanted) this.#options.dials.ready(this, { now: true })
    if (this.#ended) this.#options.finish()
  }

  /** Does not push from here: the reader would handle the piece later, where its time is not counted. */
  override _read(): void {
    this.#wanted = true
    const { dials, inflow } = this.#options
    if (inflow.queue.bytes > 0 || this.peerEnded) dials.ready(this, { now: false })
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const sent = this.outflow.send(chunk)
    if (typeof sent === 'boolean') done()
    else sent.then(() => done(), done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#ended = true
    this.#connection.out.send('END', this.#stream, {})
    if (this.peerEnded) this.#options.finish()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const { dials, inflow, leave } = this.#options
    this.outflow.stop()
    dials.queued(-inflow.queue.bytes)
    inflow.queue.clear()
    dials.closed(this)
    if (!(this.#ended && this.peerEnded)) leave()
    done(error)
  }

  handOn(): boolean {
    if (!this.#wanted || this.destroyed) return false
    const { dials, inflow } = this.#options
    const piece = inflow.queue.take(this.#pieceBytes)
    if (!piece) {
      if (!this.peerEnded) return false
      this.#wanted = false
      this.push(null)
      return false
    }
    const { length } = piece
    dials.queued(-length)
    const began = performance.now()
    this.#wanted = this.push(piece)
    const isSlow = performance.now() - began > SLOW_MS
    this.#pieceBytes = isSlow
      ? Math.max(MIN_PIECE, this.#pieceBytes / 2)
      : Math.min(MAX_PIECE, this.#pieceBytes * 2)
    const isOver = this.#ended && this.peerEnded
    inflow.taken(length, isOver ? undefined : this.#connection, this.#stream)
    return this.#wanted && !this.destroyed && (inflow.queue.bytes > 0 || this.peerEnded)
  }
}
