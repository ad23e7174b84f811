// The sending side of a connection: few system calls, a bounded buffer, backpressure from the socket.
import type { Socket } from 'node:net'
import { Wakeup } from '../lib/wakeup.ts'
import type { Written } from '../wire/chunks.ts'
import { encodeMessage, type Fields } from '../wire/fields.ts'
import { encodeFrame, frameHeader } from '../wire/frames.ts'
import { FIELDS, type FieldsOf, MESSAGE, type MessageName } from './messages.gen.ts'

/** Below this, one copy is cheaper than a second vector of a write. */
const COPY_BYTES = 16 * 1024
/** Senders wait for drain long before this: only a guest that never reads gets here. */
const MAX_UNSENT_BYTES = 16 * 1024 * 1024
/** An unhurried message goes with the next frame, or after this long. */
const UNHURRIED_MS = 20
const MAX_UNHURRIED = 64

export class Writer {
  readonly #socket: Socket
  readonly #onStuck: () => void
  readonly #planned = new Set<() => void>()
  readonly #drained = new Wakeup()
  #turnPlanned = false
  readonly #unhurried: Buffer[] = []
  #unhurriedTimer: NodeJS.Timeout | undefined

  /** `onStuck`: the peer does not read what it is sent. */
  constructor(socket: Socket, onStuck: () => void) {
    this.#socket = socket
    this.#onStuck = onStuck
    socket.on('drain', () => this.#onDrain())
  }

  /** Too much waits to be sent: wait for `drained` before sending more. */
  get congested(): boolean {
    return this.#socket.writableNeedDrain
  }

  /** Resolves when there is room again, or when the connection has ended. */
  drained(): Promise<void> {
    return this.congested ? this.#drained.wait() : Promise.resolve()
  }

  send<N extends MessageName>(name: N, stream: number, fields: FieldsOf[N]): void {
    this.frame(encodeMessage(MESSAGE[name], stream, FIELDS[name]!, fields as Fields))
  }

  /** As `send`, for a message that nobody waits for: together with the next frame it costs no system call. */
  sendUnhurried<N extends MessageName>(name: N, stream: number, fields: FieldsOf[N]): void {
    this.#unhurried.push(encodeMessage(MESSAGE[name], stream, FIELDS[name]!, fields as Fields))
    if (this.#unhurried.length >= MAX_UNHURRIED) this.#sendUnhurried()
    else this.#unhurriedTimer ??= setTimeout(() => this.#sendUnhurried(), UNHURRIED_MS).unref()
  }

  /** Sends DATA, a large chunk without a copy. The chunk must not be changed before `written` is called. */
  data(stream: number, chunk: Uint8Array, written?: Written): void {
    if (chunk.length < COPY_BYTES) {
      this.frame(encodeFrame(MESSAGE.DATA, stream, chunk), written)
      return
    }
    if (this.#socket.destroyed) return
    if (this.#unhurried.length > 0) this.#sendUnhurried()
    this.#socket.cork()
    this.#socket.write(frameHeader(MESSAGE.DATA, stream, chunk.length))
    this.#socket.write(chunk, written)
    this.#socket.uncork()
    this.#checkUnsent()
  }

  /** A whole frame. */
  frame(frame: Buffer, written?: Written): void {
    if (this.#socket.destroyed) return
    this.#socket.write(this.#unhurried.length > 0 ? this.#withUnhurried(frame) : frame, written)
    this.#checkUnsent()
  }

  /** Calls back at the end of this turn of the event loop, later when congested. Planning the same callback twice calls it once. */
  plan(callback: () => void): void {
    this.#planned.add(callback)
    if (this.#turnPlanned) return
    this.#turnPlanned = true
    setImmediate(() => {
      this.#turnPlanned = false
      this.#runPlanned()
    })
  }

  close(): void {
    this.#socket.destroy()
    clearTimeout(this.#unhurriedTimer)
    this.#planned.clear()
    this.#drained.wake()
  }

  #withUnhurried(...frames: Buffer[]): Buffer {
    clearTimeout(this.#unhurriedTimer)
    this.#unhurriedTimer = undefined
    return Buffer.concat([...this.#unhurried.splice(0), ...frames])
  }

  #sendUnhurried(): void {
    const frames = this.#withUnhurried()
    if (!this.#socket.destroyed) this.#socket.write(frames)
  }

  #onDrain(): void {
    this.#drained.wake()
    this.#runPlanned()
  }

  #runPlanned(): void {
    if (this.#socket.destroyed || this.congested || this.#planned.size === 0) return
    const planned = [...this.#planned]
    this.#planned.clear()
    this.#socket.cork()
    for (const callback of planned) callback()
    this.#socket.uncork()
  }

  #checkUnsent(): void {
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) this.#onStuck()
  }
}
