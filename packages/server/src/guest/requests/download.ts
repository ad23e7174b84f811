// READ and TAR_OUT: OPENED, then DATA at the pace of the reader, then END.
import { type Chunks, free } from '../../wire/chunks.ts'
import type { Frame } from '../../wire/frames.ts'
import { decode } from '../decode.ts'
import { Violation } from '../errors.ts'
import { INITIAL_WINDOW, MESSAGE, type OpenedFields } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { Inflow } from '../streams/inflow.ts'
import { Windows } from '../streams/windows.ts'
import { Iteration } from './iteration.ts'
import type { Request } from './request.ts'

/** `minBytes` is not less than one frame of an archive. */
const WINDOWS = { sharedBytes: 4 * INITIAL_WINDOW, minBytes: 64 * 1024, maxBytes: INITIAL_WINDOW }

type Parse<T> = (opened: OpenedFields, body: Chunks<Buffer>) => T

/** The downloads of one sandbox, which share memory. */
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
    const options = { parse, maxBytes, windows: this.#windows }
    return new Download(this.#presence, { ...request, fields } as Request, options).run()
  }
}

interface DownloadOptions<T> {
  parse: Parse<T>
  maxBytes: number
  windows: Windows
}

class Download<T> extends Iteration<T, Buffer> implements Chunks<Buffer> {
  readonly #inflow: Inflow
  readonly #options: DownloadOptions<T>
  #isCounted = true

  constructor(presence: Presence, request: Request, options: DownloadOptions<T>) {
    super(presence, request)
    this.#options = options
    this.#inflow = new Inflow(() => options.windows.size())
  }

  protected override finish(): void {
    super.finish()
    if (this.#isCounted) this.#options.windows.closed()
    this.#isCounted = false
  }

  protected override onMessage(frame: Frame): void {
    if (frame.type === MESSAGE.DATA && this.settled) this.#onData(frame)
    else if (frame.type === MESSAGE.END && this.settled) {
      this.finish()
      this.end()
    } else if (frame.type === MESSAGE.OPENED && !this.settled)
      this.resolve(this.#options.parse(decode('OPENED', frame.payload), this))
    else this.unexpected(frame)
  }

  #onData(frame: Frame): void {
    const { payload } = frame
    const { length } = payload
    this.#inflow.count(frame)
    if (this.#inflow.received > this.#options.maxBytes)
      throw new Violation('more bytes of a file than asked for')
    if (length === 0) return
    if (this.give(payload)) this.#inflow.taken(length, this.connection, this.stream)
    else this.#inflow.queue.push(payload)
  }

  protected override onFail(reason: unknown): void {
    this.clear()
    super.onFail(reason)
  }

  protected override take(): Buffer | undefined {
    const piece = this.#inflow.queue.take()
    if (piece) this.#inflow.taken(piece.length, this.connection, this.stream)
    return piece
  }

  protected override clear(): void {
    this.#inflow.queue.clear()
  }

  release(chunk: Buffer): void {
    free(chunk)
  }
}
