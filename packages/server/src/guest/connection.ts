// One connection of the guest, from the server's side:
//
//     accepted ──> HELLO within helloTimeoutMs ──> WELCOME ──> streams ──> closed
//
// Everything that comes in is checked. A message that breaks the protocol is a Violation: it closes the connection, and
// `onLost` is called on every open stream. The connection knows frames and stream numbers, not what a stream is for.
import type { Socket } from 'node:net'
import { IsletError } from '@islet/contract'
import { share, useUp } from '../wire/chunks.ts'
import { encodeFrame, type Frame, FrameDecoder, HEADER_BYTES, WireError } from '../wire/frames.ts'
import { decode } from './decode.ts'
import { clean, connectionLost, Violation } from './errors.ts'
import { GENERATION, INITIAL_WINDOW, MESSAGE, type MessageName, SENDER } from './messages.gen.ts'
import { Writer } from './writer.ts'

/** What a stream was opened for. A Violation thrown by onFrame closes the connection. */
export interface StreamOwner {
  /** Counts against `maxRequests`. Processes do not: they have their own bound. */
  readonly limited: boolean
  /** Its answer would be lost if the connection ended now. */
  readonly awaited?: boolean
  onFrame(frame: Frame): void
  /** The connection ended before the stream did. */
  onLost(error: IsletError): void
}

interface ConnectionOptions {
  helloTimeoutMs: number
  maxRequests: number
  onHello(connection: Connection): void
  /** Called once, before `onLost` of the streams. `violation`: the guest broke the protocol. */
  onClose(connection: Connection, reason: string, violation: boolean): void
  /** The server's own code threw while it handled a frame. */
  onBug(error: unknown): void
}

/** An OUTPUT payload begins with u8 channel and u64 offset. */
export const OUTPUT_PREFIX_BYTES = 9
const PIECES = new Map<number, number>([
  [MESSAGE.DATA, 0],
  [MESSAGE.OUTPUT, OUTPUT_PREFIX_BYTES],
])

const MAX_PINGS = 64
const MAX_STREAM = 0xffff_ffff

/** What may still come on a stream after the server reset it: two windows. */
const LATE_BYTES = 2 * INITIAL_WINDOW
const LATE_BYTES_ENDED = 4096
const MAX_LATE_BYTES = 64 * 1024 * 1024

const GUEST_SENDS: readonly boolean[] = Array.from({ length: 256 }, (_, type) => {
  const name = (Object.keys(MESSAGE) as MessageName[]).find((key) => MESSAGE[key] === type)
  return name !== undefined && SENDER[name] !== 'server'
})

export class Connection {
  bootId = ''
  privileged = false
  readonly out: Writer
  readonly #options: ConnectionOptions
  readonly #decoder = new FrameDecoder({ pieces: PIECES })
  readonly #streams = new Map<number, StreamOwner>()
  readonly #helloTimer: NodeJS.Timeout
  #requests = 0
  #lastStream = 0
  #wrapped = false
  #lateBytes = 0
  #closed = false
  #pings: PromiseWithResolvers<void>[] = []
  #pingNumber = 0

  constructor(socket: Socket, options: ConnectionOptions) {
    this.out = new Writer(socket, () => this.violate('it does not read'))
    this.#options = options
    this.#helloTimer = setTimeout(() => this.violate('no HELLO in time'), options.helloTimeoutMs)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.#close(error.message, false))
    socket.on('end', () => this.#close('the guest closed it', false))
    socket.on('close', () => this.#close('closed', false))
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether a caller waits for an answer that cannot be asked for again. */
  get awaited(): boolean {
    return this.#streams.values().some((owner) => owner.awaited)
  }

  open(owner: StreamOwner): number {
    const { maxRequests } = this.#options
    if (owner.limited && this.#requests >= maxRequests)
      throw new IsletError('limit_exceeded', `${maxRequests} requests to the sandbox are running already.`, {
        hint: 'Wait for some of them to end.',
      })
    do {
      if (this.#lastStream === MAX_STREAM) {
        this.#lastStream = 0
        this.#wrapped = true
      }
      this.#lastStream++
    } while (this.#streams.has(this.#lastStream))
    this.#streams.set(this.#lastStream, owner)
    if (owner.limited) this.#requests++
    return this.#lastStream
  }

  /** The stream has ended: up to `lateBytes` that still come on it are ignored. */
  end(stream: number, lateBytes = LATE_BYTES_ENDED): void {
    const owner = this.#streams.get(stream)
    if (!owner) return
    this.#streams.delete(stream)
    if (owner.limited) this.#requests--
    this.#lateBytes = Math.min(this.#lateBytes + lateBytes, MAX_LATE_BYTES)
  }

  reset(stream: number): void {
    this.out.send('RESET', stream, {})
    this.end(stream, LATE_BYTES)
  }

  ping(): Promise<void> {
    if (this.#pings.length >= MAX_PINGS)
      return Promise.reject(new IsletError('limit_exceeded', 'The sandbox has not answered earlier pings.'))
    const pong = Promise.withResolvers<void>()
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeUInt32LE((this.#pingNumber + this.#pings.length) >>> 0)
    this.#pings.push(pong)
    this.out.frame(encodeFrame(MESSAGE.PING, 0, bytes))
    return pong.promise
  }

  violate(reason: string): void {
    this.#close(reason, true)
  }

  destroy(reason: string): void {
    this.#close(reason, false)
  }

  #receive(chunk: Buffer): void {
    if (this.#closed) return
    try {
      share(chunk)
      const ungiven = this.#decoder.push(chunk, this.#onFrame)
      useUp(chunk.buffer, ungiven)
    } catch (error) {
      if (!(error instanceof WireError)) this.#options.onBug(error)
      this.#close((error as Error).message, error instanceof WireError)
    }
  }

  readonly #onFrame = (frame: Frame): void => {
    if (this.#closed) return
    const { type, stream } = frame
    if (!GUEST_SENDS[type]) throw new Violation(`a message of type ${type}, which the guest may not send`)
    if (stream === 0 || type < MESSAGE.OK) {
      this.#onOwnFrame(frame)
      return
    }
    const owner = this.#streams.get(stream)
    if (owner) owner.onFrame(frame)
    else this.#ignore(frame)
  }

  /** Ignores frames that were under way when their stream ended, up to a bound. */
  #ignore({ stream, payload }: Frame): void {
    if (this.bootId === '' || (stream > this.#lastStream && !this.#wrapped))
      throw new Violation(`a frame for stream ${stream}, which was never opened`)
    this.#lateBytes -= payload.length + HEADER_BYTES
    if (this.#lateBytes < 0) throw new Violation('more frames for ended streams than can have been under way')
  }

  #onOwnFrame({ type, stream, payload }: Frame): void {
    if (stream !== 0) throw new Violation(`a message of type ${type} on stream ${stream}`)
    if (type === MESSAGE.HELLO) this.#onHello(payload)
    else if (type === MESSAGE.PONG) this.#onPong(payload)
    else throw new Violation(`a message of type ${type} on stream 0`)
  }

  #onHello(payload: Buffer): void {
    if (this.bootId !== '') throw new Violation('a second HELLO')
    const { generation, bootId = '', privileged } = decode('HELLO', payload)
    if (generation !== GENERATION)
      throw new Violation(`a guest of generation ${generation}; this server speaks ${GENERATION}`)
    if (!/^[0-9A-Za-z_-]{1,64}$/.test(bootId)) throw new Violation('a malformed boot id')
    clearTimeout(this.#helloTimer)
    this.bootId = bootId
    this.privileged = privileged === 1
    this.out.send('WELCOME', 0, { generation: GENERATION })
    this.#options.onHello(this)
  }

  #onPong(payload: Buffer): void {
    const ping = this.#pings[0]
    if (!ping || payload.length !== 4 || payload.readUInt32LE(0) !== this.#pingNumber >>> 0)
      throw new Violation('a PONG without a PING')
    this.#pings.shift()
    this.#pingNumber = (this.#pingNumber + 1) >>> 0
    ping.resolve()
  }

  #close(reason: string, violation: boolean): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#helloTimer)
    this.out.close()
    this.#options.onClose(this, clean(reason, 200), violation)
    const error = connectionLost()
    for (const ping of this.#pings) ping.reject(error)
    const owners = [...this.#streams.values()]
    this.#streams.clear()
    for (const owner of owners) owner.onLost(error)
  }
}
