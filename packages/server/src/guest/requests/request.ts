// One request and its answer, on a stream of its own: what all kinds of requests share. It opens the stream, handles ERROR,
// abort and a lost connection, and retries a request that may safely be sent twice.

import { IsletError } from '@islet/contract'
import { type Frame, WireError } from '../../wire/frames.ts'
import type { Connection, StreamOwner } from '../connection.ts'
import { decode } from '../decode.ts'
import { type About, guestError, Violation } from '../errors.ts'
import { type FieldsOf, MESSAGE, type MessageName, type OkFields } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'

export interface Request<N extends MessageName = MessageName> {
  name: N
  fields: FieldsOf[N]
  about: About
  signal?: AbortSignal | undefined
  /** When the connection is lost before the answer: send it again on the next one, once. */
  again?: boolean
}

export abstract class Exchange<T> implements StreamOwner {
  readonly #presence: Presence
  protected readonly request: Request
  /** Set while the stream is open. */
  protected connection: Connection | undefined
  protected stream = 0
  protected settled = false
  readonly limited = true
  readonly #answer = Promise.withResolvers<T>()
  #again: boolean

  constructor(presence: Presence, request: Request) {
    this.#presence = presence
    this.request = request
    this.#again = request.again ?? false
  }

  /** A request that will be sent again need not be waited for. */
  get awaited(): boolean {
    return !this.settled && !this.#again
  }

  run(): Promise<T> {
    const { signal } = this.request
    if (signal?.aborted) return Promise.reject(signal.reason)
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    this.#begin()
    return this.#answer.promise
  }

  onFrame(frame: Frame): void {
    if (frame.type !== MESSAGE.ERROR) {
      this.onMessage(frame)
      return
    }
    const fields = decode('ERROR', frame.payload)
    this.finish()
    this.fail(guestError(fields, this.request.about))
  }

  onLost(error: IsletError): void {
    this.connection = undefined
    if (!this.#again || this.settled) {
      this.finish()
      this.fail(error)
      return
    }
    this.#again = false
    this.restart()
    this.#begin()
  }

  /** A frame that is not ERROR. */
  protected abstract onMessage(frame: Frame): void
  /** The request failed, perhaps after it was answered: tells the reader of the answer. */
  protected onFail(_error: unknown): void {}
  /** Before the retry: drops what the first try brought. */
  protected restart(): void {}

  protected resolve(value: T): void {
    if (this.settled) throw new Violation('a second answer to one request')
    this.settled = true
    this.#presence.succeeded()
    this.#answer.resolve(value)
  }

  /** The stream has ended. Calling it twice is fine. */
  protected finish(): void {
    this.connection?.end(this.stream)
    this.connection = undefined
    this.request.signal?.removeEventListener('abort', this.#onAbort)
  }

  protected fail(error: unknown): void {
    if (!this.settled) {
      this.settled = true
      this.#answer.reject(error)
    }
    this.onFail(error)
  }

  /** Resets the stream and fails. */
  protected cancel(error: unknown): void {
    this.connection?.reset(this.stream)
    this.finish()
    this.fail(error)
  }

  protected unexpected(frame: Frame): never {
    throw new Violation(`a message of type ${frame.type} in answer to ${this.request.name}`)
  }

  readonly #onAbort = (): void => this.cancel(this.request.signal?.reason)

  #begin(): void {
    const { connection } = this.#presence
    if (!connection || connection.out.congested) {
      const wait = connection ? connection.out.drained() : this.#presence.connected(this.request.signal)
      wait.then(
        () => this.settled || this.#begin(),
        (error) => {
          this.finish()
          this.fail(error)
        },
      )
      return
    }
    try {
      this.stream = connection.open(this)
      this.connection = connection
      connection.out.send(this.request.name, this.stream, this.request.fields)
    } catch (error) {
      this.finish()
      this.fail(error instanceof WireError ? new IsletError('bad_request', `${error.message}.`) : error)
    }
  }
}

/** A request that is answered by OK alone. `parse` runs while the frame is received, so it may throw a Violation. */
class Call<T> extends Exchange<T> {
  readonly #parse: (ok: OkFields) => T

  constructor(presence: Presence, request: Request, parse: (ok: OkFields) => T) {
    super(presence, request)
    this.#parse = parse
  }

  protected override onMessage(frame: Frame): void {
    if (frame.type !== MESSAGE.OK) this.unexpected(frame)
    const answer = this.#parse(decode('OK', frame.payload))
    this.finish()
    this.resolve(answer)
  }
}

export function call<N extends MessageName, T>(
  presence: Presence,
  request: Request<N>,
  parse: (ok: OkFields) => T,
): Promise<T> {
  return new Call(presence, request, parse).run()
}

/** For requests whose OK has no fields. */
export function nothing(): void {}
