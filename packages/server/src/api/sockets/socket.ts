// Rules of every WebSocket: bytes are binary frames, control messages are JSON text frames, the last message is an exit or an error.
import { WebSocket } from 'ws'
import type { Log } from '../../log.ts'
import { free } from '../../wire/chunks.ts'
import { asIsletError } from '../http/errors.ts'

const NORMAL = 1000
const OUR_FAULT = 1011
const PING_MS = 30_000
/** A client that reads nothing for this many pings (ten minutes) is disconnected: its buffer and the program wait for it. */
const STALLED_PINGS = 20

/** The number of messages that each socket has written. */
const taken = new WeakMap<WebSocket, number>()

/** Resolves when the kernel has taken the data, which gives backpressure. Frees the bytes. */
export function send(socket: WebSocket, data: string | Buffer): Promise<void> {
  return new Promise((resolve) =>
    socket.send(data, (error) => {
      if (!error && typeof data !== 'string') free(data)
      taken.set(socket, (taken.get(socket) ?? 0) + 1)
      resolve()
    }),
  )
}

/**
 * Sends messages at the client's pace and closes after the last one. The loop ends when the client leaves, but not while it waits
 * for a message: the route's `close` must end the iteration.
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

/** Disconnects a client that does not answer pings or reads nothing for long. A slow client, or one that the process makes wait, stays. */
export function keepAlive(socket: WebSocket, pingMs = PING_MS): void {
  let isAnswered = true
  let stalled = 0
  let takenBefore = 0
  socket.on('pong', () => {
    isAnswered = true
    stalled = 0
  })
  const timer = setInterval(() => {
    const isBusy = socket.isPaused || socket.bufferedAmount > 0
    if (!isAnswered && !isBusy) return socket.terminate()
    const takenNow = taken.get(socket) ?? 0
    stalled = socket.bufferedAmount > 0 && takenNow === takenBefore ? stalled + 1 : 0
    takenBefore = takenNow
    if (stalled >= STALLED_PINGS) return socket.terminate()
    isAnswered = isBusy
    socket.ping()
  }, pingMs)
  socket.once('close', () => clearInterval(timer))
}
