// An HTTP server for one listener, with TLS or without.
import type { Server, ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer } from '../lib/http.ts'
import { type Certificate, secure } from './certificate.ts'

/** For the head of a request and for a TLS handshake. Bodies, answers and WebSockets have no such limit. */
const HEAD_TIMEOUT_MS = 10_000
/** Longer than common clients and proxies keep idle connections, so that they close first. */
const KEEP_ALIVE_MS = 75_000

interface ListenerOptions extends Pick<ServerOptions, 'shouldUpgradeCallback' | 'highWaterMark'> {
  maxHeaderSize: number
  certificate: Certificate | undefined
  headTimeoutMs?: number | undefined
}

export function createListener({
  certificate,
  headTimeoutMs = HEAD_TIMEOUT_MS,
  ...options
}: ListenerOptions): Server {
  const all: ServerOptions = {
    ...options,
    headersTimeout: headTimeoutMs,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.max(50, Math.floor(headTimeoutMs / 3)),
    noDelay: true,
    // The API answers with an error body instead.
    requireHostHeader: false,
  }
  if (!certificate) return createServer(all)
  const server = createTlsServer({ ...all, ...secure(certificate.pair), handshakeTimeout: headTimeoutMs })
  certificate.renew(server)
  // Node would report a client error, but before the handshake there is nothing to answer on.
  server.removeAllListeners('tlsClientError')
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  return server
}

export const schemeOf = (certificate: Certificate | undefined): 'http' | 'https' =>
  certificate ? 'https' : 'http'
