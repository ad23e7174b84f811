// DIAL: OPENED, then DATA and END both ways, as a Duplex. Each direction ends by itself.
import { Duplex } from 'node:stream'
import type { Frame } from '../wire/frames.ts'
import type { Connection } from './connection.ts'
import { connectionLost } from './errors.ts'
import { Exchange, type Host, type Request } from './exchange.ts'
import { Inflow } from './inflow.ts'
import { MESSAGE } from './messages.gen.ts'
import { Outflow } from './outflow.ts'

export function dial(host: Host, request: Request<'DIAL'>): Promise<Duplex> {
  return new Dial(host, request as unknown as Request).run()
}

class Dial extends Exchange<Duplex> {
  #socket: DialSocket | undefined

  protected override onMessage(frame: Frame): void {
    const socket = this.#socket
    if (frame.type === MESSAGE.OPENED && !socket) {
      this.#socket = new DialSocket(
        this.connection!,
        this.stream,
        () => this.#leave(),
        () => this.finish(),
      )
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

class DialSocket extends Duplex {
  readonly outflow: Outflow
  peerEnded = false
  readonly #inflow = new Inflow()
  readonly #connection: Connection
  readonly #stream: number
  readonly #leave: () => void
  readonly #finish: () => void
  #ended = false
  #wanted = false

  /** `finish`: both sides have ended. `leave`: gives the stream up before that. */
  constructor(connection: Connection, stream: number, leave: () => void, finish: () => void) {
    super({ allowHalfOpen: true, emitClose: true })
    this.outflow = new Outflow(connection, stream)
    this.#connection = connection
    this.#stream = stream
    this.#leave = leave
    this.#finish = finish
    // The guest can break the stream before whoever dialed has a chance to listen: that must not end the server.
    this.on('error', () => {})
  }

  onData(frame: Frame): void {
    this.#inflow.count(frame)
    this.#inflow.queue.push(frame.payload)
    if (this.#wanted) this.#feed()
  }

  onEnd(): void {
    this.peerEnded = true
    if (this.#wanted) this.#feed()
    if (this.#ended) this.#finish()
  }

  override _read(): void {
    this.#wanted = true
    this.#feed()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const sent = this.outflow.send(chunk)
    if (typeof sent === 'boolean') done()
    else sent.then(() => done(), done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#ended = true
    this.#connection.out.send('END', this.#stream, {})
    if (this.peerEnded) this.#finish()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.outflow.stop()
    this.#inflow.queue.clear()
    if (!(this.#ended && this.peerEnded)) this.#leave()
    done(error)
  }

  #feed(): void {
    while (this.#wanted) {
      const piece = this.#inflow.queue.take()
      if (!piece) {
        if (this.peerEnded) {
          this.#wanted = false
          this.push(null)
        }
        return
      }
      this.#inflow.taken(
        piece.length,
        this.#ended && this.peerEnded ? undefined : this.#connection,
        this.#stream,
      )
      this.#wanted = this.push(piece)
    }
  }
}
