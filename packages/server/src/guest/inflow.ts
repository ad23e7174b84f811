import type { Frame } from '../wire/frames.ts'
import type { Connection } from './connection.ts'
import { Violation } from './errors.ts'
import { INITIAL_WINDOW, MAX_DATA } from './messages.gen.ts'
import { ByteQueue } from './queue.ts'

/** How far the consumer gets before the guest is told: few WINDOW frames, and the guest never runs dry. */
const GRANT_BYTES = INITIAL_WINDOW / 4

/** DATA that comes in on a stream: what may come is bounded by the window, and the window follows the consumer. */
export class Inflow {
  readonly queue = new ByteQueue()
  received = 0
  #limit = INITIAL_WINDOW
  #taken = 0

  /** Counts a piece against the window. */
  count(frame: Frame): void {
    if (frame.length > MAX_DATA) throw new Violation(`${frame.length} bytes of DATA in one frame`)
    this.countBytes(frame.payload.length)
  }

  countBytes(bytes: number): void {
    this.received += bytes
    if (this.received > this.#limit) throw new Violation('more data than the window allows')
  }

  /** The consumer is done with so many bytes: raises the window when that is due. */
  taken(bytes: number, connection: Connection | undefined, stream: number): void {
    this.#taken += bytes
    if (!connection || this.#taken + INITIAL_WINDOW - this.#limit < GRANT_BYTES) return
    this.#limit = this.#taken + INITIAL_WINDOW
    connection.out.send('WINDOW', stream, { limit: this.#limit })
  }
}
