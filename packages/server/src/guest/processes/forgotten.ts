import type { Connection, StreamOwner } from '../connection.ts'
import { MAX_PROCESSES } from '../messages.gen.ts'

/** So many FORGETs are sent before the guest is asked, by a PING, whether it has got that far. */
const CONFIRM_EVERY = 256
/** Output that may come on the stream of a process that is attached only to be forgotten. */
const LATE_BYTES = 512 * 1024
const IGNORED: StreamOwner = { limited: false, onFrame() {}, onLost() {} }

/**
 * Processes to be forgotten. FORGET has no answer, so one that was on its way when the connection was cut may not
 * have arrived, and the guest would keep the record for ever: what is not confirmed is sent again on the next one.
 */
export class Forgotten {
  /** The output offset of each, by id, oldest first. */
  readonly #ids = new Map<string, number>()
  #confirming = false

  /** `connection`: where FORGET was sent already. */
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

  /** The guest answers in order: after the PONG it has done all that was sent before. */
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

/** FORGET goes on the process's stream, so there must be one. */
export function forget(connection: Connection, id: string, offset: number): void {
  const stream = connection.open(IGNORED)
  connection.out.send('ATTACH', stream, { id, offset })
  connection.out.send('FORGET', stream, {})
  connection.end(stream, LATE_BYTES)
}
