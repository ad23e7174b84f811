// The API on a port, or on a unix socket.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { IsletError } from '@islet/contract'
import type { Certificate } from '../../listen/certificate.ts'
import type { Connections, Watched } from '../../listen/connections.ts'
import { createListener, schemeOf } from '../../listen/server.ts'
import type { Api } from '../api.ts'
import { endWithError } from '../sockets/upgrade.ts'
import { expectContinue } from './body.ts'

/** Port 0: any free one. */
type Where = { host: string; port: number } | { socketPath: string }

type ServeOptions = Where & {
  /** Counts the connections of this listener too. */
  connections: Connections
  /** If set, the listener speaks TLS only. */
  certificate?: Certificate | undefined
  headTimeoutMs?: number | undefined
}

export interface Served {
  url: string
  port: number
  server: Server
  /** Refuses new requests, waits for running ones up to `timeoutMs`, then breaks the rest. May be called twice. */
  close(options?: { timeoutMs?: number }): Promise<void>
}

// A path of 4095 bytes may be percent-encoded, and headers come with it.
const MAX_HEADER_BYTES = 32 * 1024
const IDLE_LOOK_MS = 25
/** Connections that wait to be accepted; the kernel has a bound of its own. A unix socket refuses what is over it, TCP lets it wait. */
const BACKLOG = 4096

export async function serveApi(api: Api, options: ServeOptions): Promise<Served> {
  const server = createApiServer(api, options)
  const watched = options.connections.watch(server)
  await listen(server, options)

  let closing: Promise<void> | undefined
  return {
    ...addressOf(server, options),
    server,
    close: ({ timeoutMs = 0 } = {}) => {
      closing ??= close(api, server, watched, timeoutMs)
      return closing
    },
  }
}

/** The API for one listener. */
function createApiServer(api: Api, { certificate, headTimeoutMs }: ServeOptions): Server {
  const server = createListener({
    certificate,
    headTimeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    // A request for another protocol (h2c) is served as HTTP/1.1.
    shouldUpgradeCallback: api.isUpgrade,
  })
  server.on('request', api.listener)
  server.on('checkContinue', (incoming, outgoing) => {
    expectContinue(incoming)
    api.listener(incoming, outgoing)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => endWithError(socket, unreadable(error)))
  api.attachWebSockets(server)
  return server
}

function listen(server: Server, where: Where): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => reject(cannotListen(error, where))
    server.once('error', onError)
    const on = 'socketPath' in where ? { path: where.socketPath } : { host: where.host, port: where.port }
    server.listen({ ...on, backlog: BACKLOG }, () => {
      server.off('error', onError)
      resolve()
    })
  })
}

function addressOf(server: Server, options: ServeOptions): { url: string; port: number } {
  if ('socketPath' in options) return { url: `unix:${options.socketPath}`, port: 0 }
  const { port } = server.address() as AddressInfo
  const name = options.host.includes(':') ? `[${options.host}]` : options.host
  return { url: `${schemeOf(options.certificate)}://${name}:${port}`, port }
}

function cannotListen(error: NodeJS.ErrnoException, where: Where): Error {
  if (error.code !== 'EADDRINUSE' || 'socketPath' in where) return error
  return new IsletError('conflict', `Something listens on ${where.host}:${where.port} already.`, {
    hint: 'Stop it, or set ISLET_PORT to another port.',
    cause: error,
  })
}

async function close(api: Api, server: Server, watched: Watched, timeoutMs: number): Promise<void> {
  api.drain()
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  // WebSockets may never end by themselves; their clients attach again.
  api.close()
  server.closeIdleConnections()
  watched.closeUnused()
  // A busy connection becomes idle after its answer, and would stay open until the client leaves.
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOK_MS)
  const timer = setTimeout(() => server.closeAllConnections(), timeoutMs)
  await closed
  clearInterval(idle)
  clearTimeout(timer)
}

/** Node's parser or head timeout refused the input before there was a request. */
function unreadable(error: NodeJS.ErrnoException): IsletError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new IsletError('headers_too_large', `A request's head has at most ${MAX_HEADER_BYTES} bytes.`)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new IsletError('request_timeout')
    default:
      return new IsletError('bad_request', 'The request is not valid HTTP.')
  }
}
