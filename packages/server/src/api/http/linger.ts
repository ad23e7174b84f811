// Answering before the whole body has arrived. Closing at once would reset the connection, and the client, still
// writing, would never see the answer; reading on would let it send for ever. So: the answer, our end of the connection,
// then for a moment what still comes is read and dropped.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** A body of known size up to this is read and dropped, and the connection kept. */
const SMALL_BODY_BYTES = 64 * 1024
const LINGER_BYTES = 16 * 1024 * 1024
const LINGER_MS = 2000
const LOOK_MS = 10

/** Adds to the headers of the answer what is needed, and makes the connection end that way. */
export function lingerAfterEnd(incoming: IncomingMessage, headers: Record<string, string>): void {
  if (Number(incoming.headers['content-length']) <= SMALL_BODY_BYTES) return
  headers.Connection = 'close'
  const { socket } = incoming
  incoming.resume()
  // What Node calls once a response with Connection: close is written.
  socket.destroySoon = () => linger(socket)
}

/** Ends our side, drops what comes, within bounds, until the other side ends too. */
export function linger(socket: Socket): void {
  if (socket.destroyed) return
  socket.end()
  const limit = socket.bytesRead + LINGER_BYTES
  const until = performance.now() + LINGER_MS
  const timer = setInterval(() => {
    if (socket.bytesRead > limit || performance.now() > until) socket.destroy()
  }, LOOK_MS)
  socket.once('close', () => clearInterval(timer))
}
