import type { Frame } from '../../wire/frames.ts'
import type { Connection } from '../connection.ts'
import { Violation } from '../errors.ts'
import { INITIAL_WINDOW, MAX_DATA } from '../messages.gen.ts'
import { ByteQueue } from './queue.ts'

/** The part of a window that the reader takes before the guest gets a WINDOW: few frames, and the guest never has to wait. */
const GRANT = 1 / 4

/** DATA that comes in on a stream. The window bounds what may come, and follows the reader. */
export class Inflow {
  readonly queue = new ByteQueue()
  received = 0
  readonly #window: () => number
  #limit: number
  #taken = 0

  /** `window`: how much may wait for the reader. It may change, and is at most INITIAL_WINDOW. */
  constructor(window = () => INITIAL_WINDOW) {
    this.#window = window
    this.#limit = window()
  }

  /** Up to this offset the guest may send. */
  get limit(): number {
    return this.#limit
  }

  /** Counts a piece against the window. */
  count(frame: Frame): void {
    if (frame.length > MAX_DATA) throw new Violation(`${frame.length} bytes of DATA in one frame`)
    this.countBytes(frame.payload.length)
  }

  countBytes(bytes: number): void {
    this.received += bytes
    // An older guest ignores a smaller window and begins with a whole one.
    if (this.received > Math.max(this.#limit, INITIAL_WINDOW))
      throw new Violation('more data than the window allows')
  }

  /** The reader took so many bytes: raises the window when that is due. */
  taken(bytes: number, connection: Connection | undefined, stream: number): void {
    this.#taken += bytes
    if (!connection) return
    const window = this.#window()
    if (this.#taken + window - this.#limit < window * GRANT) return
    this.#limit = this.#taken + window
    connection.out.send('WINDOW', stream, { limit: this.#limit })
  }
}
