// WATCH: OPENED, then EVENT until the reader leaves.
import type { Frame } from '../../wire/frames.ts'
import { decode } from '../decode.ts'
import { Violation } from '../errors.ts'
import type { WatchEvent } from '../guest.ts'
import { type EventFields, MAX_PATH, MESSAGE } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { Iteration } from './iteration.ts'
import type { Request } from './request.ts'

/** Events that wait for a slow reader. Beyond that they become one overflow, which means: look again. */
const MAX_EVENTS = 4096
const KINDS = [undefined, 'created', 'changed', 'removed', 'overflow'] as const

export function watch(presence: Presence, request: Request<'WATCH'>): Promise<AsyncIterable<WatchEvent>> {
  return new Watch(presence, request).run()
}

class Watch extends Iteration<AsyncIterable<WatchEvent>, WatchEvent> {
  #events: WatchEvent[] = []

  protected override onMessage(frame: Frame): void {
    if (frame.type === MESSAGE.OPENED && !this.settled) this.resolve(this)
    else if (frame.type === MESSAGE.EVENT && this.settled)
      this.#onEvent(toEvent(decode('EVENT', frame.payload)))
    else this.unexpected(frame)
  }

  #onEvent(event: WatchEvent): void {
    if (this.give(event)) return
    if (this.#events.length >= MAX_EVENTS) this.#events = [{ kind: 'overflow', path: '', directory: false }]
    this.#events.push(event)
  }

  protected override take(): WatchEvent | undefined {
    return this.#events.shift()
  }

  protected override clear(): void {
    this.#events = []
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
