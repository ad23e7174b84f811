import type { Written } from '../../wire/chunks.ts'
import { decodeFields } from '../../wire/fields.ts'
import type { Frame } from '../../wire/frames.ts'
import type { Connection } from '../connection.ts'
import { Violation } from '../errors.ts'
import { FIELDS, INITIAL_WINDOW, MAX_DATA, type WindowFields } from '../messages.gen.ts'

/** DATA that goes out on a stream, at the pace of the guest's window and of the socket. */
export class Outflow {
  readonly #connection: Connection
  readonly #stream: number
  #limit = INITIAL_WINDOW
  #sent = 0
  #stopped = false
  #room: PromiseWithResolvers<void> | undefined

  constructor(connection: Connection, stream: number) {
    this.#connection = connection
    this.#stream = stream
  }

  /** True when the last byte is with the socket, at once when it can be; false when the stream has ended. `written`: it has left. */
  send(chunk: Uint8Array, written?: Written): boolean | Promise<boolean> {
    const room = this.#limit - this.#sent
    if (this.#stopped || chunk.length > Math.min(room, MAX_DATA) || this.#connection.out.congested)
      return this.#sendInParts(chunk, written)
    this.#connection.out.data(this.#stream, chunk, written)
    this.#sent += chunk.length
    return true
  }

  async #sendInParts(chunk: Uint8Array, written: Written | undefined): Promise<boolean> {
    let at = 0
    while (at < chunk.length && !this.#stopped) {
      const room = this.#limit - this.#sent
      if (room === 0) await this.#roomAgain()
      else if (this.#connection.out.congested) await this.#connection.out.drained()
      else {
        const end = Math.min(chunk.length, at + MAX_DATA, at + room)
        this.#connection.out.data(
          this.#stream,
          at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end),
          end === chunk.length ? written : undefined,
        )
        this.#sent += end - at
        at = end
      }
    }
    return !this.#stopped
  }

  onWindow(frame: Frame): void {
    const { limit = 0 } = decodeFields(FIELDS.WINDOW!, frame.payload) as WindowFields
    if (limit < this.#limit) throw new Violation('a window that falls')
    this.#limit = limit
    if (this.#limit > this.#sent) this.#wake()
  }

  /** The stream has ended: whoever waits in send goes on. */
  stop(): void {
    this.#stopped = true
    this.#wake()
  }

  #roomAgain(): Promise<void> {
    this.#room ??= Promise.withResolvers<void>()
    return this.#room.promise
  }

  #wake(): void {
    this.#room?.resolve()
    this.#room = undefined
  }
}
