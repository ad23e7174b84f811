// One HTTP server per preview, on a port of its own.
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { IsletError } from '@islet/contract'
import type { PortRange } from '../config/preview.ts'
import type { Handler } from './handler.ts'

/** The head of a request must come within this time; bodies, answers and open sockets may take as long as they want. */
const HEADERS_TIMEOUT_MS = 15_000
export const MAX_HEADER_BYTES = 64 * 1024
/** Longer than common clients and proxies keep an idle connection, so that it is they who close. */
const KEEP_ALIVE_MS = 75_000
/** Open connections, idle ones too: of one preview, and of all. */
const MAX_CONNECTIONS = 512
const MAX_ALL_CONNECTIONS = 8192

export interface ListenersOptions {
  host: string
  range: PortRange | undefined
  headersTimeoutMs?: number
}

export class Listeners {
  readonly #options: ListenersOptions
  readonly #servers = new Map<string, Server>()
  readonly #sockets = new Map<Server, Set<Socket>>()
  #connections = 0

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  has(key: string): boolean {
    return this.#servers.has(key)
  }

  /** Answers with the port: the wanted one if it is free. */
  async open(key: string, wanted: number | null, handler: Handler): Promise<number> {
    const server = this.#create(handler)
    try {
      const port = await this.#listen(server, wanted)
      this.#servers.set(key, server)
      return port
    } catch (error) {
      this.#sockets.delete(server)
      throw error
    }
  }

  /** Breaks the connections that are open. */
  async close(key: string): Promise<void> {
    const server = this.#servers.get(key)
    if (!server) return
    this.#servers.delete(key)
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    // Also those that changed their protocol, which Node no longer counts.
    for (const socket of this.#sockets.get(server)!) socket.destroy()
    await closed
    this.#sockets.delete(server)
  }

  /** Takes no more connections; those that are open go on until `closeAll`. */
  stop(): void {
    for (const server of this.#servers.values()) server.close()
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#servers.keys()].map((key) => this.close(key)))
  }

  #create(handler: Handler): Server {
    const headersTimeout = this.#options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS
    const server = createServer(
      {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout,
        requestTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE_MS,
        connectionsCheckingInterval: Math.max(50, Math.floor(headersTimeout / 3)),
        keepAlive: true,
        noDelay: true,
        // Ours is an error with a body.
        requireHostHeader: false,
        shouldUpgradeCallback: handler.isUpgrade,
      },
      handler.serve,
    )
    server.maxConnections = MAX_CONNECTIONS
    server.on('checkContinue', handler.serve)
    server.on('checkExpectation', handler.serve)
    server.on('upgrade', handler.upgrade)
    const sockets = new Set<Socket>()
    this.#sockets.set(server, sockets)
    server.on('connection', (socket: Socket) => {
      if (this.#connections >= MAX_ALL_CONNECTIONS) {
        socket.destroy()
        return
      }
      this.#connections++
      sockets.add(socket)
      socket.once('close', () => {
        this.#connections--
        sockets.delete(socket)
      })
    })
    return server
  }

  async #listen(server: Server, wanted: number | null): Promise<number> {
    for (const port of this.#candidates(wanted)) {
      if (await this.#tryListen(server, port)) return (server.address() as AddressInfo).port
    }
    throw new IsletError('limit_exceeded', 'No port is left for another preview.', {
      hint: 'Delete some, or widen ISLET_PREVIEW_PORTS.',
    })
  }

  *#candidates(wanted: number | null): Generator<number> {
    const { range } = this.#options
    if (wanted !== null && (!range || (wanted >= range.from && wanted <= range.to))) yield wanted
    if (!range) yield 0
    else for (let port = range.from; port <= range.to; port++) yield port
  }

  /** False: taken, or not for us to have. */
  #tryListen(server: Server, port: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => {
        if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false)
        else reject(error)
      }
      server.once('error', onError)
      server.listen({ host: this.#options.host, port }, () => {
        server.off('error', onError)
        resolve(true)
      })
    })
  }
}
