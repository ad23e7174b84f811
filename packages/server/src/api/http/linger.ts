// Answers before the whole body has arrived. Closing at once would reset the connection before the client reads the answer;
// reading on would let the client send for ever. So the server sends the answer, ends its side, and drops input for a moment.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** A body of known size up to this is dropped, and the connection is kept. */
const SMALL_BODY_BYTES = 64 * 1024
const LINGER_BYTES = 16 * 1024 * 1024
const LINGER_MS = 2000
const LOOK_MS = 10

/** Adds `Connection: close` if needed, and makes the connection linger at its end. */
export function lingerAfterEnd(incoming: IncomingMessage, headers: Record<string, string>): void {
  if (Number(incoming.headers['content-length']) <= SMALL_BODY_BYTES) return
  headers.Connection = 'close'
  const { socket } = incoming
  incoming.resume()
  // Node calls this after a response with Connection: close.
  socket.destroySoon = () => linger(socket)
}

/** Ends our side and drops input, within bounds, until the client ends its side. */
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
