// LIST: ENTRIES frames under the window, then OK.

import { free } from '../../wire/chunks.ts'
import type { Frame } from '../../wire/frames.ts'
import { decode } from '../decode.ts'
import { Violation } from '../errors.ts'
import type { Entry } from '../guest.ts'
import { MESSAGE } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { Inflow } from '../streams/inflow.ts'
import { toListedEntry } from './records.ts'
import { Exchange, type Request } from './request.ts'

export const MAX_ENTRIES = 100_000
/** Bytes of payload; the entries take a few times that in memory. */
const MAX_LIST_BYTES = 32 * 1024 * 1024

export interface Listing {
  entries: Entry[]
  truncated: boolean
}

/** Takes entries as they come. If `add` throws, the request fails with that error. */
export interface EntrySink {
  add(entries: Entry[]): void
  /** The request was sent again: entries come again from the first one. */
  clear(): void
}

export function list(presence: Presence, request: Request<'LIST'>, sink?: EntrySink): Promise<Listing> {
  return new List(presence, request, sink).run()
}

class List extends Exchange<Listing> {
  readonly #sink: EntrySink
  readonly #entries: Entry[] = []
  #count = 0
  #inflow = new Inflow()

  /** Without a sink the entries are collected. */
  constructor(presence: Presence, request: Request, sink?: EntrySink) {
    super(presence, request)
    this.#sink = sink ?? {
      add: (entries) => void this.#entries.push(...entries),
      clear: () => {
        this.#entries.length = 0
      },
    }
  }

  protected override onMessage(frame: Frame): void {
    if (frame.type === MESSAGE.ENTRIES) this.#onEntries(frame)
    else if (frame.type === MESSAGE.OK) {
      const { truncated } = decode('OK', frame.payload)
      this.finish()
      this.resolve({ entries: this.#entries, truncated: truncated === 1 })
    } else this.unexpected(frame)
  }

  protected override restart(): void {
    this.#sink.clear()
    this.#count = 0
    this.#inflow = new Inflow()
  }

  #onEntries({ payload }: Frame): void {
    this.#inflow.countBytes(payload.length)
    const { limit = MAX_ENTRIES } = this.request.fields as { limit?: number }
    const entries = (decode('ENTRIES', payload).entry ?? []).map(toListedEntry)
    const length = free(payload)
    this.#count += entries.length
    if (this.#count > limit) throw new Violation('more entries than asked for')
    try {
      this.#sink.add(entries)
    } catch (error) {
      this.cancel(error)
      return
    }
    if (this.#inflow.received <= MAX_LIST_BYTES) {
      this.#inflow.taken(length, this.connection, this.stream)
      return
    }
    this.connection?.reset(this.stream)
    this.finish()
    this.resolve({ entries: this.#entries, truncated: true })
  }
}
