// LIST: ENTRIES frames under the window, then OK.
import { decodeFields } from '../wire/fields.ts'
import type { Frame } from '../wire/frames.ts'
import { Violation } from './errors.ts'
import { Exchange, type Host, type Request } from './exchange.ts'
import type { Entry } from './guest.ts'
import { Inflow } from './inflow.ts'
import { type EntriesFields, FIELDS, MESSAGE, type OkFields } from './messages.gen.ts'
import { toListedEntry } from './records.ts'

export const MAX_ENTRIES = 100_000
/** Of payload; what is held is a few times that. */
const MAX_LIST_BYTES = 32 * 1024 * 1024

export interface Listing {
  entries: Entry[]
  truncated: boolean
}

export function list(host: Host, request: Request<'LIST'>): Promise<Listing> {
  return new List(host, request as unknown as Request).run()
}

class List extends Exchange<Listing> {
  #entries: Entry[] = []
  #inflow = new Inflow()

  protected override onMessage(frame: Frame): void {
    if (frame.type === MESSAGE.ENTRIES) this.#onEntries(frame)
    else if (frame.type === MESSAGE.OK) {
      const { truncated } = decodeFields(FIELDS.OK!, frame.payload) as OkFields
      this.finish()
      this.resolve({ entries: this.#entries, truncated: truncated === 1 })
    } else this.unexpected(frame)
  }

  protected override restart(): void {
    this.#entries = []
    this.#inflow = new Inflow()
  }

  #onEntries({ payload }: Frame): void {
    this.#inflow.countBytes(payload.length)
    const { limit = MAX_ENTRIES } = this.request.fields as { limit?: number }
    for (const record of (decodeFields(FIELDS.ENTRIES!, payload) as EntriesFields).entry ?? []) {
      if (this.#entries.length === limit) throw new Violation('more entries than asked for')
      this.#entries.push(toListedEntry(record))
    }
    if (this.#inflow.received <= MAX_LIST_BYTES) {
      this.#inflow.taken(payload.length, this.connection, this.stream)
      return
    }
    this.connection?.reset(this.stream)
    this.finish()
    this.resolve({ entries: this.#entries, truncated: true })
  }
}
