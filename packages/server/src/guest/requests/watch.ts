// WATCH: OPENED, then EVENT until the watcher leaves.

import { decodeFields } from '../../wire/fields.ts'
import type { Frame } from '../../wire/frames.ts'
import { Violation } from '../errors.ts'
import type { WatchEvent } from '../guest.ts'
import { type EventFields, FIELDS, MAX_PATH, MESSAGE } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { Exchange, type Request } from './request.ts'

/** Events that wait for a slow watcher. Beyond that they become one overflow: look again. */
const MAX_EVENTS = 4096
const KINDS = [undefined, 'created', 'changed', 'removed', 'overflow'] as const

export function watch(presence: Presence, request: Request<'WATCH'>): Promise<AsyncIterable<WatchEvent>> {
  return new Watch(presence, request as unknown as Request).run()
}

class Watch extends Exchange<AsyncIterable<WatchEvent>> implements AsyncIterableIterator<WatchEvent> {
  #events: WatchEvent[] = []
  #left = false
  #error: { reason: unknown } | undefined
  #waiting: PromiseWithResolvers<IteratorResult<WatchEvent>> | undefined

  protected override onMessage(frame: Frame): void {
    if (frame.type === MESSAGE.OPENED && !this.settled) this.resolve(this)
    else if (frame.type === MESSAGE.EVENT && this.settled)
      this.#onEvent(toEvent(decodeFields(FIELDS.EVENT!, frame.payload) as EventFields))
    else this.unexpected(frame)
  }

  protected override onFail(reason: unknown): void {
    this.#error ??= { reason }
    this.#waiting?.reject(reason)
    this.#waiting = undefined
  }

  #onEvent(event: WatchEvent): void {
    if (this.#waiting) {
      this.#waiting.resolve({ done: false, value: event })
      this.#waiting = undefined
      return
    }
    if (this.#events.length >= MAX_EVENTS) this.#events = [{ kind: 'overflow', path: '', directory: false }]
    this.#events.push(event)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<WatchEvent>> {
    const event = this.#events.shift()
    if (event) return Promise.resolve({ done: false, value: event })
    if (this.#left) return Promise.resolve({ done: true, value: undefined })
    if (this.#error) return Promise.reject(this.#error.reason)
    if (this.#waiting) return Promise.reject(new TypeError('the watch is being read already'))
    this.#waiting = Promise.withResolvers()
    return this.#waiting.promise
  }

  return(): Promise<IteratorResult<WatchEvent>> {
    this.connection?.reset(this.stream)
    this.finish()
    this.#left = true
    this.#events = []
    this.#waiting?.resolve({ done: true, value: undefined })
    this.#waiting = undefined
    return Promise.resolve({ done: true, value: undefined })
  }
}

function toEvent(fields: EventFields): WatchEvent {
  const kind = KINDS[fields.kind ?? 0]
  const path = fields.path ?? ''
  if (!kind) throw new Violation(`an event of the unknown kind ${fields.kind}`)
  if (path.length > MAX_PATH || (kind !== 'overflow' && !path.startsWith('/')))
    throw new Violation('an event with a malformed path')
  return { kind, path, directory: fields.directory === 1 }
}
