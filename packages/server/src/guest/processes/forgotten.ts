import type { Connection, StreamOwner } from '../connection.ts'
import { MAX_PROCESSES } from '../messages.gen.ts'

/** After so many FORGETs a PING asks the guest whether it has handled them. */
const CONFIRM_EVERY = 256
/** Output that may still come on the stream of a process that is attached only to be forgotten. */
const LATE_BYTES = 512 * 1024
const IGNORED: StreamOwner = { limited: false, onFrame() {}, onLost() {} }

/**
 * Processes that the guest is to forget. FORGET has no answer, so one that was under way when the connection was cut may not
 * have arrived, and the guest would keep the record for ever. Unconfirmed ones are sent again on the next connection.
 */
export class Forgotten {
  /** The output offset of each process, by id, oldest first. */
  readonly #ids = new Map<string, number>()
  #confirming = false

  /** `connection`: the one on which FORGET was sent. */
  add(id: string, offset: number, connection: Connection | undefined): void {
    this.#ids.set(id, offset)
    if (this.#ids.size > MAX_PROCESSES) this.#ids.delete(this.#ids.keys().next().value!)
    if (connection && this.#ids.size >= CONFIRM_EVERY) this.#confirm(connection)
  }

  /** The id is used for another process now. */
  delete(id: string): void {
    this.#ids.delete(id)
  }

  clear(): void {
    this.#ids.clear()
  }

  onConnect(connection: Connection): void {
    if (this.#ids.size === 0) return
    for (const [id, offset] of this.#ids) forget(connection, id, offset)
    this.#confirm(connection)
  }

  /** The guest answers in order: the PONG confirms everything that was sent before the PING. */
  #confirm(connection: Connection): void {
    if (this.#confirming) return
    this.#confirming = true
    const sent = [...this.#ids.keys()]
    const done = () => {
      this.#confirming = false
    }
    connection.ping().then(() => {
      for (const id of sent) this.#ids.delete(id)
      done()
    }, done)
  }
}

/** FORGET goes on the stream of a process, so one is opened for it. */
export function forget(connection: Connection, id: string, offset: number): void {
  const stream = connection.open(IGNORED)
  connection.out.send('ATTACH', stream, { id, offset })
  connection.out.send('FORGET', stream, {})
  connection.end(stream, LATE_BYTES)
}
