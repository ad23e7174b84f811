// What every WebSocket of ours does: bytes are binary frames, control is JSON text frames, the last is an exit or an error.
import { WebSocket } from 'ws'
import type { Log } from '../log.ts'
import { asIsletError } from './errors.ts'

const NORMAL = 1000
const OUR_FAULT = 1011
const PING_MS = 30_000

/** Resolves when the kernel took it: this is what makes a slow client slow the sender. */
export function send(socket: WebSocket, data: string | Buffer): Promise<void> {
  return new Promise((resolve) => socket.send(data, () => resolve()))
}

/**
 * Sends messages as they come, at the client's pace, and closes after the last. The iteration is left when the client
 * goes away; one that waits for its next message must be ended by the route's `close`.
 */
export async function pushMessages(
  socket: WebSocket,
  messages: AsyncIterable<{ type: string }>,
  log: Log,
): Promise<void> {
  socket.on('error', (error) => log.debug({ err: error }, 'client broke the protocol'))
  keepAlive(socket)
  try {
    for await (const message of messages) {
      if (socket.readyState !== WebSocket.OPEN) return
      await send(socket, JSON.stringify(message))
    }
    endSocket(socket)
  } catch (error) {
    failSocket(socket, error, log)
  }
}

export function endSocket(socket: WebSocket): void {
  socket.resume()
  socket.close(NORMAL)
}

export function failSocket(socket: WebSocket, thrown: unknown, log: Log, closeCode?: number): void {
  const error = asIsletError(thrown)
  if (socket.readyState !== WebSocket.OPEN) return
  if (error.code === 'internal') log.error({ err: error.cause ?? error }, 'socket failed')
  void send(socket, JSON.stringify({ type: 'error', error: { code: error.code, message: error.message } }))
  socket.resume()
  socket.close(closeCode ?? (error.status < 500 ? 4000 + error.status : OUR_FAULT), error.code)
}

/** Ends a client that is gone. One that is only slow, or that the process makes wait, is left alone. */
export function keepAlive(socket: WebSocket): void {
  let isAnswered = true
  socket.on('pong', () => {
    isAnswered = true
  })
  const timer = setInterval(() => {
    const isBusy = socket.isPaused || socket.bufferedAmount > 0
    if (!isAnswered && !isBusy) return socket.terminate()
    isAnswered = isBusy
    socket.ping()
  }, PING_MS)
  socket.once('close', () => clearInterval(timer))
}
