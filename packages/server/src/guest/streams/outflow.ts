import { Wakeup } from '../../lib/wakeup.ts'
import type { Written } from '../../wire/chunks.ts'
import type { Frame } from '../../wire/frames.ts'
import type { Connection } from '../connection.ts'
import { decode } from '../decode.ts'
import { Violation } from '../errors.ts'
import { INITIAL_WINDOW, MAX_DATA } from '../messages.gen.ts'

/** DATA that goes out on a stream, at the pace of the guest's window and of the socket. */
export class Outflow {
  readonly #connection: Connection
  readonly #stream: number
  #limit = INITIAL_WINDOW
  #sent = 0
  #stopped = false
  readonly #room = new Wakeup()

  constructor(connection: Connection, stream: number) {
    this.#connection = connection
    this.#stream = stream
  }

  /**
   * True once the socket has the last byte, without a promise where it can take the chunk at once; false when the stream has
   * ended. `written` is called when the chunk has left.
   */
  send(chunk: Uint8Array, written?: Written): boolean | Promise<boolean> {
    const room = this.#limit - this.#sent
    const { length } = chunk
    if (this.#stopped || length > Math.min(room, MAX_DATA) || this.#connection.out.congested)
      return this.#sendInParts(chunk, written)
    this.#connection.out.data(this.#stream, chunk, written)
    this.#sent += length
    return true
  }

  async #sendInParts(chunk: Uint8Array, written: Written | undefined): Promise<boolean> {
    const { length } = chunk
    let at = 0
    while (at < length && !this.#stopped) {
      const room = this.#limit - this.#sent
      if (room === 0) await this.#room.wait()
      else if (this.#connection.out.congested) await this.#connection.out.drained()
      else {
        const end = Math.min(length, at + MAX_DATA, at + room)
        this.#connection.out.data(
          this.#stream,
          at === 0 && end === length ? chunk : chunk.subarray(at, end),
          end === length ? written : undefined,
        )
        this.#sent += end - at
        at = end
      }
    }
    return !this.#stopped
  }

  onWindow(frame: Frame): void {
    const { limit = 0 } = decode('WINDOW', frame.payload)
    if (limit < this.#limit) throw new Violation('a window that shrinks')
    this.#limit = limit
    if (this.#limit > this.#sent) this.#room.wake()
  }

  /** The stream has ended: callers that wait in `send` get false. */
  stop(): void {
    this.#stopped = true
    this.#room.wake()
  }
}
