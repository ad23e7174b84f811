// READ and TAR_OUT: OPENED, then DATA at the pace of whoever iterates the body, then END.

import { type Chunks, free } from '../../wire/chunks.ts'
import { decodeFields } from '../../wire/fields.ts'
import type { Frame } from '../../wire/frames.ts'
import { Violation } from '../errors.ts'
import { FIELDS, INITIAL_WINDOW, MESSAGE, type OpenedFields } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { Inflow } from '../streams/inflow.ts'
import { Windows } from '../streams/windows.ts'
import { Exchange, type Request } from './request.ts'

/** Not less than one frame of an archive. */
const WINDOWS = { sharedBytes: 4 * INITIAL_WINDOW, minBytes: 64 * 1024, maxBytes: INITIAL_WINDOW }

type Parse<T> = (opened: OpenedFields, body: Chunks<Buffer>) => T

/** Those of one sandbox. */
export class Downloads {
  readonly #presence: Presence
  readonly #windows = new Windows(WINDOWS)

  constructor(presence: Presence) {
    this.#presence = presence
  }

  start<T>(
    request: Request<'READ'> | Request<'TAR_OUT'>,
    parse: Parse<T>,
    maxBytes = Number.POSITIVE_INFINITY,
  ): Promise<T> {
    if (request.signal?.aborted) return Promise.reject(request.signal.reason)
    this.#windows.opened()
    const fields = { ...request.fields, window: this.#windows.size() }
    return new Download(this.#presence, { ...request, fields } as Request, parse, {
      maxBytes,
      windows: this.#windows,
    }).run()
  }
}

class Download<T> extends Exchange<T> implements AsyncIterableIterator<Buffer>, Chunks<Buffer> {
  readonly #inflow: Inflow
  readonly #parse: Parse<T>
  readonly #maxBytes: number
  readonly #windows: Windows
  #isOver = false
  #ended = false
  #error: { reason: unknown } | undefined
  #waiting: PromiseWithResolvers<IteratorResult<Buffer>> | undefined

  constructor(
    presence: Presence,
    request: Request,
    parse: Parse<T>,
    { maxBytes, windows }: { maxBytes: number; windows: Windows },
  ) {
    super(presence, request)
    this.#parse = parse
    this.#maxBytes = maxBytes
    this.#windows = windows
    this.#inflow = new Inflow(() => windows.size())
  }

  protected override finish(): void {
    super.finish()
    if (!this.#isOver) this.#windows.closed()
    this.#isOver = true
  }

  protected override onMessage(frame: Frame): void {
    if (frame.type === MESSAGE.DATA && this.settled) this.#onData(frame)
    else if (frame.type === MESSAGE.END && this.settled) this.#onEnd()
    else if (frame.type === MESSAGE.OPENED && !this.settled)
      this.resolve(this.#parse(decodeFields(FIELDS.OPENED!, frame.payload) as OpenedFields, this))
    else this.unexpected(frame)
  }

  protected override onFail(reason: unknown): void {
    this.#error ??= { reason }
    this.#inflow.queue.clear()
    this.#waiting?.reject(reason)
    this.#waiting = undefined
  }

  #onData(frame: Frame): void {
    const { payload } = frame
    this.#inflow.count(frame)
    if (this.#inflow.received > this.#maxBytes) throw new Violation('more bytes of a file than asked for')
    if (payload.length === 0) return
    if (!this.#waiting) {
      if (!this.#inflow.queue.push(payload)) free(payload)
      return
    }
    this.#waiting.resolve({ done: false, value: payload })
    this.#waiting = undefined
    this.#inflow.taken(payload.length, this.connection, this.stream)
  }

  #onEnd(): void {
    this.#ended = true
    this.finish()
    this.#waiting?.resolve({ done: true, value: undefined })
    this.#waiting = undefined
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Buffer>> {
    if (this.#error) return Promise.reject(this.#error.reason)
    const piece = this.#inflow.queue.take()
    if (piece) {
      this.#inflow.taken(piece.length, this.connection, this.stream)
      return Promise.resolve({ done: false, value: piece })
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined })
    if (this.#waiting) return Promise.reject(new TypeError('the body is being read already'))
    this.#waiting = Promise.withResolvers()
    return this.#waiting.promise
  }

  release(chunk: Buffer): void {
    free(chunk)
  }

  /** The reader leaves: the rest is not wanted. */
  return(): Promise<IteratorResult<Buffer>> {
    if (this.connection) {
      this.connection.reset(this.stream)
      this.finish()
    }
    this.#ended = true
    this.#inflow.queue.clear()
    this.#waiting?.resolve({ done: true, value: undefined })
    this.#waiting = undefined
    return Promise.resolve({ done: true, value: undefined })
  }
}
