// Stdin of a process, held until the guest has confirmed it:
//
//     start ........ sent ........ end ........ limit     offsets in the stdin sequence
//       | on its way   | held here   | may be added |
//
// A limit of L says that the program has taken L - STDIN_BUFFER bytes, so at most STDIN_BUFFER are held.
import { ByteBuffer } from '../../lib/byte-buffer.ts'
import { Wakeup } from '../../lib/wakeup.ts'
import { writeU64 } from '../../wire/fields.ts'
import { allocateFrame, HEADER_BYTES } from '../../wire/frames.ts'
import type { Connection } from '../connection.ts'
import { Violation } from '../errors.ts'
import { MAX_DATA, MESSAGE, STDIN_BUFFER } from '../messages.gen.ts'

const PREFIX_BYTES = 8

export class Stdin {
  #connection: Connection | undefined
  #stream = 0
  readonly #held = new ByteBuffer()
  #start = 0
  #sent = 0
  #end = 0
  #limit = STDIN_BUFFER
  #ended = false
  #endSent = false
  #closed = false
  readonly #room = new Wakeup()
  #order: Promise<void> = Promise.resolve()

  /** It was opened on a connection before. */
  get opened(): boolean {
    return this.#stream !== 0
  }

  /** Resolves when all bytes are held or sent. Calls are served in order. */
  write(bytes: Uint8Array): Promise<void> {
    this.#order = this.#order.then(() => this.#add(bytes))
    return this.#order
  }

  end(): Promise<void> {
    this.#order = this.#order.then(() => {
      this.#ended = true
      this.#flush()
    })
    return this.#order
  }

  /** The process has just started on this stream. */
  open(connection: Connection, stream: number): void {
    if (this.#closed) return
    this.#connection = connection
    this.#stream = stream
    this.#flush()
  }

  /** Attached again: the guest has everything before `offset`. */
  resume(connection: Connection, stream: number, offset: number, ended: boolean): void {
    if (this.#closed) return
    if (offset < this.#start || offset > this.#sent) throw new Violation('a stdin offset out of range')
    this.#confirm(offset)
    this.#sent = offset
    this.#endSent = ended
    this.open(connection, stream)
  }

  /** Attached to a process that another server fed: nothing may be sent before its STDIN_WINDOW comes. */
  adopt(connection: Connection, stream: number, offset: number, ended: boolean): void {
    this.#start = this.#sent = this.#end = offset
    this.#limit = offset
    this.#ended = this.#endSent = ended
    this.open(connection, stream)
  }

  onLimit(limit: number): void {
    if (limit < this.#limit || limit > this.#sent + STDIN_BUFFER)
      throw new Violation('a stdin window out of range')
    this.#limit = limit
    this.#confirm(limit - STDIN_BUFFER)
    this.#room.wake()
  }

  /** The connection is lost; held bytes wait for the next one. */
  detach(): void {
    this.#connection = undefined
  }

  /** The process has ended: nothing reads stdin any more. */
  close(): void {
    this.#closed = true
    this.#connection = undefined
    this.#held.dropFirst(this.#held.length)
    this.#room.wake()
  }

  async #add(bytes: Uint8Array): Promise<void> {
    let at = 0
    while (at < bytes.length && !this.#closed && !this.#ended) {
      const room = this.#limit - this.#end
      if (room <= 0) await this.#room.wait()
      else if (this.#connection?.out.congested) await this.#connection.out.drained()
      else {
        const count = Math.min(room, bytes.length - at, MAX_DATA)
        this.#held.append(bytes.subarray(at, at + count))
        this.#end += count
        this.#flush()
        at += count
      }
    }
  }

  #confirm(offset: number): void {
    const gone = Math.min(offset, this.#end) - this.#start
    if (gone <= 0) return
    // After `close` nothing is held.
    this.#held.dropFirst(Math.min(gone, this.#held.length))
    this.#start += gone
  }

  /** Frames are copies, because held bytes move when the guest confirms some. */
  #flush(): void {
    const connection = this.#connection
    if (!connection) return
    while (this.#sent < this.#end) {
      const count = Math.min(this.#end - this.#sent, MAX_DATA)
      const frame = allocateFrame(MESSAGE.STDIN, this.#stream, PREFIX_BYTES + count)
      const from = this.#sent - this.#start
      writeU64(frame, HEADER_BYTES, this.#sent)
      this.#held.bytes.copy(frame, HEADER_BYTES + PREFIX_BYTES, from, from + count)
      this.#sent += count
      connection.out.frame(frame)
    }
    if (!this.#ended || this.#endSent) return
    this.#endSent = true
    connection.out.send('STDIN_END', this.#stream, {})
  }
}
