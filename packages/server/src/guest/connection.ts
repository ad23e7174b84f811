// One connection of the guest, from the server's side:
//
//     accepted ──> HELLO within helloTimeoutMs ──> WELCOME ──> streams ──> closed
//
// Everything that comes in is checked. What breaks the protocol is a Violation: it closes the connection, and every
// stream that was open hears onLost. The connection knows frames and stream numbers, never what a stream is for.
import type { Socket } from 'node:net'
import { IsletError } from '@islet/contract'
import { decodeFields, encodeMessage, type Fields } from '../wire/fields.ts'
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  frameHeader,
  HEADER_BYTES,
  WireError,
} from '../wire/frames.ts'
import { clean, connectionLost, Violation } from './errors.ts'
import {
  FIELDS,
  type FieldsOf,
  GENERATION,
  INITIAL_WINDOW,
  MESSAGE,
  type MessageName,
  SENDER,
} from './messages.gen.ts'

/** Whoever opened a stream. A Violation thrown by onFrame closes the connection. */
export interface StreamOwner {
  onFrame(frame: Frame): void
  /** The connection ended first; nothing more will come on this stream. */
  onLost(error: IsletError): void
}

export interface ConnectionOptions {
  helloTimeoutMs: number
  maxStreams: number
  onHello(connection: Connection): void
  /** Called once, before the streams hear of it. `violation` is set when the guest broke the protocol. */
  onClose(connection: Connection, reason: string, violation: boolean): void
  /** Something in the server itself threw while it handled a frame. */
  onBug(error: unknown): void
}

/** An OUTPUT payload begins with u8 channel and u64 offset. */
export const OUTPUT_PREFIX_BYTES = 9
const PIECES = new Map<number, number>([
  [MESSAGE.DATA, 0],
  [MESSAGE.OUTPUT, OUTPUT_PREFIX_BYTES],
])

/** Below this, one copy is cheaper than a second vector of a write. */
const COPY_BYTES = 16 * 1024
/** Senders wait for drain long before this; a guest that lets it fill takes our answers and never reads. */
const MAX_UNSENT_BYTES = 16 * 1024 * 1024
const MAX_PINGS = 64
const MAX_STREAM = 0xffff_ffff

/** What may still come on a stream after the server gave it up: a window that was under way, twice. */
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
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #decoder = new FrameDecoder({ pieces: PIECES })
  readonly #streams = new Map<number, StreamOwner>()
  readonly #helloTimer: NodeJS.Timeout
  #lastStream = 0
  #wrapped = false
  #lateBytes = 0
  #closed = false
  #pings: PromiseWithResolvers<void>[] = []
  #pingNumber = 0
  #drained: PromiseWithResolvers<void> | undefined
  readonly #turns = new Set<() => void>()
  #turnPlanned = false

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket
    this.#options = options
    this.#helloTimer = setTimeout(() => this.violate('no HELLO in time'), options.helloTimeoutMs)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('drain', () => this.#onDrain())
    socket.on('error', (error) => this.#close(error.message, false))
    socket.on('end', () => this.#close('the guest closed it', false))
    socket.on('close', () => this.#close('closed', false))
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Too much waits to be sent: wait for `drained` before adding to it. */
  get congested(): boolean {
    return this.#socket.writableNeedDrain
  }

  /** Resolves when there is room again, or when the connection has ended. */
  drained(): Promise<void> {
    if (this.#closed || !this.congested) return Promise.resolve()
    this.#drained ??= Promise.withResolvers<void>()
    return this.#drained.promise
  }

  open(owner: StreamOwner): number {
    if (this.#streams.size >= this.#options.maxStreams)
      throw new IsletError(
        'limit_exceeded',
        `More than ${this.#options.maxStreams} things happen in the sandbox at once.`,
        { hint: 'Wait for some of them to end.' },
      )
    do {
      if (this.#lastStream === MAX_STREAM) {
        this.#lastStream = 0
        this.#wrapped = true
      }
      this.#lastStream++
    } while (this.#streams.has(this.#lastStream))
    this.#streams.set(this.#lastStream, owner)
    return this.#lastStream
  }

  /** The stream has ended: what still comes on it is ignored, within reason. */
  end(stream: number, lateBytes = LATE_BYTES_ENDED): void {
    if (this.#streams.delete(stream)) this.#lateBytes = Math.min(this.#lateBytes + lateBytes, MAX_LATE_BYTES)
  }

  reset(stream: number): void {
    this.send('RESET', stream, {})
    this.end(stream, LATE_BYTES)
  }

  send<N extends MessageName>(name: N, stream: number, fields: FieldsOf[N]): void {
    this.write(encodeMessage(MESSAGE[name], stream, FIELDS[name]!, fields as Fields))
  }

  /** DATA, in one system call and without a copy when it is large. The chunk must not be changed afterwards. */
  sendData(stream: number, chunk: Uint8Array): void {
    if (chunk.length < COPY_BYTES) {
      this.write(encodeFrame(MESSAGE.DATA, stream, chunk))
      return
    }
    if (this.#closed) return
    this.#socket.cork()
    this.#socket.write(frameHeader(MESSAGE.DATA, stream, chunk.length))
    this.#socket.write(chunk)
    this.#socket.uncork()
    this.#checkUnsent()
  }

  /** A whole frame. */
  write(frame: Buffer): void {
    if (this.#closed) return
    this.#socket.write(frame)
    this.#checkUnsent()
  }

  ping(): Promise<void> {
    if (this.#pings.length >= MAX_PINGS)
      return Promise.reject(new IsletError('limit_exceeded', 'The sandbox has not answered earlier pings.'))
    const pong = Promise.withResolvers<void>()
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeUInt32LE((this.#pingNumber + this.#pings.length) >>> 0)
    this.#pings.push(pong)
    this.write(encodeFrame(MESSAGE.PING, 0, bytes))
    return pong.promise
  }

  /** Calls back once at the end of this turn of the event loop (later when congested); planning twice is once. */
  plan(callback: () => void): void {
    this.#turns.add(callback)
    if (this.#turnPlanned) return
    this.#turnPlanned = true
    setImmediate(() => {
      this.#turnPlanned = false
      this.#runTurns()
    })
  }

  violate(reason: string): void {
    this.#close(reason, true)
  }

  destroy(reason: string): void {
    this.#close(reason, false)
  }

  #runTurns(): void {
    if (this.#closed || this.congested || this.#turns.size === 0) return
    const turns = [...this.#turns]
    this.#turns.clear()
    this.#socket.cork()
    for (const turn of turns) turn()
    this.#socket.uncork()
  }

  #onDrain(): void {
    this.#drained?.resolve()
    this.#drained = undefined
    this.#runTurns()
  }

  #checkUnsent(): void {
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) this.violate('it does not read what it is sent')
  }

  #receive(chunk: Buffer): void {
    if (this.#closed) return
    try {
      this.#decoder.push(chunk, this.#onFrame)
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

  /** Frames that crossed the end of their stream on the wire. Only so much can have been under way. */
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
    const { generation, bootId = '', privileged } = decodeFields(FIELDS.HELLO!, payload) as FieldsOf['HELLO']
    if (generation !== GENERATION)
      throw new Violation(`a guest of generation ${generation}; this server speaks ${GENERATION}`)
    if (!/^[0-9A-Za-z_-]{1,64}$/.test(bootId)) throw new Violation('a malformed boot id')
    clearTimeout(this.#helloTimer)
    this.bootId = bootId
    this.privileged = privileged === 1
    this.send('WELCOME', 0, { generation: GENERATION })
    this.#options.onHello(this)
  }

  #onPong(payload: Buffer): void {
    const ping = this.#pings[0]
    if (!ping || payload.length !== 4 || payload.readUInt32LE(0) !== this.#pingNumber >>> 0)
      throw new Violation('a PONG to no PING')
    this.#pings.shift()
    this.#pingNumber = (this.#pingNumber + 1) >>> 0
    ping.resolve()
  }

  #close(reason: string, violation: boolean): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#helloTimer)
    this.#socket.destroy()
    this.#options.onClose(this, clean(reason, 200), violation)
    this.#drained?.resolve()
    this.#turns.clear()
    const error = connectionLost()
    for (const ping of this.#pings) ping.reject(error)
    const owners = [...this.#streams.values()]
    this.#streams.clear()
    for (const owner of owners) owner.onLost(error)
  }
}
