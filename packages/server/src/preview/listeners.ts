// One HTTP server per preview, on a port of its own.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { IsletError } from '@islet/contract'
import type { PortRange } from '../config/preview.ts'
import type { Certificate } from '../listen/certificate.ts'
import type { Connections, Watched } from '../listen/connections.ts'
import { createListener } from '../listen/server.ts'
import type { Handler } from './visitors.ts'

export const MAX_HEADER_BYTES = 64 * 1024
/** Buffer of each stream on the way to a visitor who does not read. */
const BUFFER_BYTES = 16 * 1024
/** Open connections of one preview. */
const MAX_CONNECTIONS = 512

interface ListenersOptions {
  host: string
  range: PortRange | undefined
  /** Counts the connections of previews too. */
  connections: Connections
  certificate?: Certificate | undefined
  headTimeoutMs?: number
}

interface Listener {
  server: Server
  watched: Watched
}

export class Listeners {
  readonly #options: ListenersOptions
  readonly #listeners = new Map<string, Listener>()

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  has(key: string): boolean {
    return this.#listeners.has(key)
  }

  /** Returns the port: the wanted one if it is free. */
  async open(key: string, wanted: number | null, handler: Handler): Promise<number> {
    const listener = this.#create(handler)
    const port = await this.#listen(listener.server, wanted)
    this.#listeners.set(key, listener)
    return port
  }

  /** Breaks open connections. */
  async close(key: string): Promise<void> {
    const listener = this.#listeners.get(key)
    if (!listener) return
    this.#listeners.delete(key)
    const closed = new Promise<void>((resolve) => listener.server.close(() => resolve()))
    listener.watched.closeAll()
    await closed
  }

  /** Accepts no more connections; open ones continue until `closeAll`. */
  stop(): void {
    for (const { server } of this.#listeners.values()) server.close()
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#listeners.keys()].map((key) => this.close(key)))
  }

  #create(handler: Handler): Listener {
    const { connections, certificate, headTimeoutMs } = this.#options
    const server = createListener({
      certificate,
      headTimeoutMs,
      maxHeaderSize: MAX_HEADER_BYTES,
      highWaterMark: BUFFER_BYTES,
      shouldUpgradeCallback: handler.isUpgrade,
    })
    const watched = connections.watch(server, { max: MAX_CONNECTIONS })
    for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, handler.serve)
    server.on('upgrade', handler.upgrade)
    return { server, watched }
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

  /** False if the port is taken or not permitted. */
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
