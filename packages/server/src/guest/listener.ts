// Listens for the guest: one connection at a time, and few enough that they do not keep the server busy.
import { lstat, unlink } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { IsletError } from '@islet/contract'
import { Rate } from '../lib/rate.ts'

interface LinkListenerOptions {
  socketPath: string
  /** Whether a connection is alive, so that a second one must be refused. */
  occupied(): boolean
  admit(socket: Socket): void
  /** Connections come faster than an honest guest redials. */
  onFlood(): void
}

/** A guest that is cut off redials at once and then with growing delays; more connections than these are a flood. */
const FLOOD_BURST = 2000
const FLOOD_PER_SECOND = 100
const BACKLOG = 16
/** Bytes of sun_path, without its NUL. */
const MAX_SOCKET_PATH = 107
/** Unsent bytes before senders wait: two full DATA frames. */
const SEND_BUFFER_BYTES = 512 * 1024

export class LinkListener {
  readonly #server: Server
  readonly #options: LinkListenerOptions
  readonly #rate = new Rate(FLOOD_PER_SECOND, FLOOD_BURST)

  private constructor(options: LinkListenerOptions) {
    this.#options = options
    this.#server = createServer({ highWaterMark: SEND_BUFFER_BYTES }, (socket) => this.#onConnection(socket))
  }

  static async open(options: LinkListenerOptions): Promise<LinkListener> {
    if (Buffer.byteLength(options.socketPath) > MAX_SOCKET_PATH)
      throw new IsletError('internal', `The socket path is longer than ${MAX_SOCKET_PATH} bytes.`)
    await removeStale(options.socketPath)
    const listener = new LinkListener(options)
    await new Promise<void>((resolve, reject) => {
      listener.#server.once('error', reject)
      listener.#server.listen({ path: options.socketPath, backlog: BACKLOG }, () => {
        listener.#server.off('error', reject)
        listener.#server.on('error', () => {})
        resolve()
      })
    })
    return listener
  }

  /** Stops listening and removes the socket. An admitted connection stays. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #onConnection(socket: Socket): void {
    socket.on('error', () => {})
    if (!this.#rate.tryNow()) {
      socket.destroy()
      this.#options.onFlood()
      return
    }
    if (!this.#options.occupied()) {
      this.#options.admit(socket)
      return
    }
    // The guest may have hung up and redialed at once: the end of its old connection is read in this same turn.
    socket.pause()
    setImmediate(() => {
      if (this.#options.occupied()) socket.destroy()
      else this.#options.admit(socket.resume())
    })
  }
}

/** Removes the socket of a server that was killed. Anything that is not a socket is left alone. */
async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (!found) return
  if (!found.isSocket()) throw new IsletError('internal', `${path} exists and is not a socket.`)
  await unlink(path)
}
