import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** What takes the requests of an http.Server. */
export interface Handler {
  serve(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** Whether a request that asks for another protocol is for `upgrade`; else it is served as if it had not asked. */
  isUpgrade(incoming: IncomingMessage): boolean
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
}
