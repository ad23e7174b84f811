// The socket from inside one sandbox to this server, with limits on connections, rates and times.

import { rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Limiter } from '../../lib/limiter.ts'
import { Rate } from '../../lib/rate.ts'
import type { Log } from '../../log.ts'
import { markInside, type Origin } from '../http/caller.ts'

const MAX_CONNECTIONS = 64
/** Beyond this rate of new connections the socket is closed for REST_MS. */
const CONNECTIONS_PER_SECOND = 500
const REST_MS = 1000
const LOOK_MS = 5
/** Requests beyond this rate wait. */
const REQUESTS_PER_SECOND = 500
/** Heads and bodies of requests: parsing JSON takes up to a tenth of a second per MiB. Requests beyond this rate wait. */
const BYTES_PER_SECOND = 2 * 1024 * 1024
/** The time for the head of a request, from the connection or the last answer. */
const HEAD_MS = 15_000
/** The time from the head of a request to the last byte of its answer. */
const REQUEST_MS = 60_000
/** At most LARGE_BODIES bodies over this size, or of unknown size, are read at once. */
const SMALL_BODY_BYTES = 64 * 1024
const LARGE_BODIES = 2

interface DoorOptions {
  path: string
  onConnection(socket: Socket): void
  log: Log
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void

interface Visitor {
  door: Door
  isBusy: boolean
  /** Bytes of requests that were answered. */
  countedBytes: number
  deadline?: NodeJS.Timeout
}

const visitors = new WeakMap<Socket, Visitor>()

export class Door {
  readonly #options: DoorOptions
  /** Undefined until the cell has a sandbox; connections are refused until then. */
  #origin: Origin | undefined
  readonly #sockets = new Set<Socket>()
  readonly #large = new Limiter(LARGE_BODIES)
  readonly #connections = new Rate(CONNECTIONS_PER_SECOND)
  readonly #requests = new Rate(REQUESTS_PER_SECOND)
  readonly #bytes = new Rate(BYTES_PER_SECOND)
  #server: Server | undefined
  #rest: NodeJS.Timeout | undefined
  #isClosed = false
  #isStill = false

  static of(socket: Socket): Door | undefined {
    return visitors.get(socket)?.door
  }

  constructor(options: DoorOptions) {
    this.#options = options
  }

  /** Assigns the door to a sandbox, once. */
  give(sandboxId: string): this {
    if (this.#origin) throw new Error(`a door of ${this.#origin.sandboxId} was given to ${sandboxId}`)
    this.#origin = { sandboxId }
    return this
  }

  /** Every user inside may connect; the directory's mode keeps everyone else away. */
  async open(): Promise<void> {
    if (this.#isClosed) return
    const { path } = this.#options
    rmSync(path, { force: true })
    const server = createServer((socket) => this.#enter(socket))
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ path, readableAll: true, writableAll: true }, resolve)
    })
    server.on('error', (error) => this.#options.log.debug({ err: error }, 'a sandbox could not connect'))
    server.unref()
    if (this.#isClosed) server.close()
  }

  /** Stops the timeouts while the sandbox is frozen, until `goOn`. */
  standStill(): void {
    this.#isStill = true
    for (const socket of this.#sockets) clearTimeout(visitors.get(socket)?.deadline)
  }

  goOn(): void {
    this.#isStill = false
    for (const socket of this.#sockets) {
      const visitor = visitors.get(socket)!
      this.#expect(socket, visitor, visitor.isBusy ? REQUEST_MS : HEAD_MS)
    }
  }

  /** A new door at the same path for the same sandbox. */
  again(): Door {
    return new Door(this.#options).give(this.#origin!.sandboxId)
  }

  /** Refuses new connections; running requests have `timeoutMs` to be answered. */
  async leave(timeoutMs: number): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#rest)
    await this.#shut()
    const deadline = performance.now() + timeoutMs
    while (this.#isServing() && performance.now() < deadline) await sleep(LOOK_MS, undefined, { ref: false })
    await this.close()
  }

  #isServing(): boolean {
    return [...this.#sockets].some((socket) => visitors.get(socket)?.isBusy)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#rest)
    for (const socket of this.#sockets) socket.destroy()
    await this.#shut()
  }

  async serve(incoming: IncomingMessage, outgoing: ServerResponse, listener: Listener): Promise<void> {
    const { socket } = incoming
    const visitor = visitors.get(socket)!
    // No pipelining: requests sent ahead would be kept in memory.
    if (visitor.isBusy) return void socket.destroy()
    visitor.isBusy = true
    this.#expect(socket, visitor, REQUEST_MS)
    const done = new Promise<void>((resolve) => {
      outgoing.once('close', () => {
        visitor.isBusy = false
        this.#bytes.take(socket.bytesRead - visitor.countedBytes)
        visitor.countedBytes = socket.bytesRead
        this.#expect(socket, visitor, HEAD_MS)
        resolve()
      })
    })
    await this.#requests.turn()
    if (isSmall(incoming)) {
      await this.#bytes.wait()
      return void (socket.destroyed || listener(incoming, outgoing))
    }
    await this.#large.run(async () => {
      // Waits until earlier bodies are counted, so that the debt is never more than a few bodies.
      await this.#bytes.wait()
      if (socket.destroyed) return
      listener(incoming, outgoing)
      await done
    })
  }

  #enter(socket: Socket): void {
    if (!this.#origin || !this.#isWelcome()) return void socket.destroy()
    markInside(socket, this.#origin)
    this.#sockets.add(socket)
    const visitor: Visitor = { door: this, isBusy: false, countedBytes: 0 }
    visitors.set(socket, visitor)
    this.#expect(socket, visitor, HEAD_MS)
    socket.once('close', () => {
      clearTimeout(visitor.deadline)
      this.#sockets.delete(socket)
    })
    this.#options.onConnection(socket)
  }

  #expect(socket: Socket, visitor: Visitor, withinMs: number): void {
    clearTimeout(visitor.deadline)
    if (socket.destroyed || this.#isStill) return
    visitor.deadline = setTimeout(() => socket.destroy(), withinMs).unref()
  }

  #isWelcome(): boolean {
    if (this.#connections.tryNow()) return this.#sockets.size < MAX_CONNECTIONS
    this.#takeRest()
    return false
  }

  /** Connection attempts cost the server nothing while nothing listens. */
  #takeRest(): void {
    if (this.#isClosed || this.#rest) return
    this.#shut().catch((error) => this.#options.log.error({ err: error }, 'a socket is not removed'))
    this.#rest = setTimeout(() => {
      this.#rest = undefined
      this.open().catch((error) => this.#options.log.error({ err: error }, 'a socket is gone'))
    }, REST_MS).unref()
  }

  /** Open connections continue. */
  async #shut(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (!server) return
    server.close()
    rmSync(this.#options.path, { force: true })
  }
}

function isSmall(incoming: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = incoming.headers
  return coding === undefined && Number(length ?? 0) <= SMALL_BODY_BYTES
}
