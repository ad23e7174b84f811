// WebSocket upgrades: the same gates and the same errors as any other request, before the handshake.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AUTO_RESUMED, IsletError, type Route } from '@islet/contract'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Credentials } from '../../access/credentials.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import { STATUS_CODES } from '../../lib/http.ts'
import type { Log } from '../../log.ts'
import { readParams, readQuery } from '../http/call.ts'
import { authorize, callerOf } from '../http/caller.ts'
import { asIsletError, errorHeaders, logError } from '../http/errors.ts'
import { chooseProtocol } from '../http/gates/auth.ts'
import type { Gate } from '../http/gates/host.ts'
import { linger } from '../http/linger.ts'
import { loggedPath, pathOf, requestIdOf } from '../http/request.ts'
import type { Router } from '../http/router.ts'
import { useOf } from '../http/uses.ts'
import type { Endpoint } from '../route.ts'
import { failSocket } from './socket.ts'

/** Runs before the handshake, so that a failure is an HTTP error. */
export type WebSocketRoute = (call: {
  params: Record<string, string>
  query: unknown
}) => Promise<WebSocketSession>

interface WebSocketSession {
  serve(socket: WebSocket): void
  /** Called if the handshake fails, and after the socket has closed. */
  close(): void
}

export interface Upgrade {
  handle(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): void
}

const MAX_MESSAGE_BYTES = 1024 * 1024
const GOING_AWAY = 1001
/** How long a client has to answer our close. */
const CLOSE_MS = 1000
/** Handshakes that woke their sandbox. */
const resumed = new WeakSet<IncomingMessage>()
/** Node reports each further piece of an invalid head: only the first is answered. */
const ended = new WeakSet<Duplex>()

export function createUpgrade({
  gates,
  router,
  log,
  sandboxes,
  credentials,
}: {
  gates: readonly Gate[]
  router: Router<Endpoint>
  log: Log
  sandboxes: Pick<Sandboxes, 'use' | 'idOf'>
  credentials: Pick<Credentials, 'watch'>
}): Upgrade {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    handleProtocols: chooseProtocol,
  })
  server.on('headers', (headers, incoming) => resumed.has(incoming) && headers.push(`${AUTO_RESUMED}: true`))
  server.on('wsClientError', (error, socket, incoming) => {
    refuse(
      new IsletError('invalid_header', `The WebSocket handshake is not valid: ${error.message}.`),
      incoming,
      socket,
    )
  })

  return {
    handle: (incoming, socket, head) => {
      socket.on('error', () => {})
      begin(incoming).then(
        (session) => handShake(session, incoming, socket, head),
        (error) => refuse(error, incoming, socket),
      )
    },
    close: () => {
      server.close()
      for (const client of server.clients) {
        client.close(GOING_AWAY)
        const timer = setTimeout(() => client.terminate(), CLOSE_MS)
        client.once('close', () => clearTimeout(timer))
      }
    },
  }

  async function begin(incoming: IncomingMessage): Promise<WebSocketSession> {
    for (const gate of gates) await gate(incoming)
    const { route, open, given } = find(pathOf(incoming))
    const caller = callerOf(incoming)
    const params = readParams(given, caller, sandboxes)
    authorize(route, params, caller)
    const query = readQuery(route, incoming)
    // The sandbox is not idle while the client is connected.
    const why = { kind: 'session', id: params.pid ?? params.wid } as const
    const use = route.wakes && (await useOf({ params, caller }, sandboxes, why))
    if (use?.autoResumed) resumed.add(incoming)
    try {
      const session = await open({ params, query })
      const close = () => {
        session.close()
        use?.[Symbol.dispose]()
      }
      return { serve: session.serve, close }
    } catch (error) {
      use?.[Symbol.dispose]()
      throw error
    }
  }

  function find(path: string): { route: Route; open: WebSocketRoute; given: Record<string, string> } {
    try {
      const { endpoint, params } = router.find('GET', path)
      const { route, open } = endpoint
      if (open) return { route, open, given: params }
    } catch (error) {
      if ((error as IsletError).code !== 'method_not_allowed') throw error
    }
    throw new IsletError('bad_request', 'This route is not a WebSocket.')
  }

  function handShake(
    session: WebSocketSession,
    incoming: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): void {
    socket.once('close', session.close)
    if (socket.destroyed) {
      session.close()
      return
    }
    server.handleUpgrade(incoming, socket, head, (ws) => {
      const fields = { requestId: requestIdOf(incoming), path: loggedPath(incoming) }
      log.info(fields, 'socket opened')
      ws.once('close', (code) => log.info({ ...fields, closeCode: code }, 'socket closed'))
      const caller = callerOf(incoming)
      if (caller)
        ws.once(
          'close',
          credentials.watch(caller, (why) => end(ws, why)),
        )
      session.serve(ws)
    })
  }

  /** A client that does not answer our close is disconnected. */
  function end(ws: WebSocket, why: IsletError): void {
    failSocket(ws, why, log)
    const timer = setTimeout(() => ws.terminate(), CLOSE_MS)
    ws.once('close', () => clearTimeout(timer))
  }

  function refuse(thrown: unknown, incoming: IncomingMessage, socket: Duplex): void {
    const error = asIsletError(thrown, requestIdOf(incoming))
    logError(error, incoming, log)
    endWithError(socket, error, { 'X-Request-Id': requestIdOf(incoming), ...errorHeaders(error) })
  }
}

/** Sends an error when there is no response object: an invalid head, or an upgrade. May be called twice. */
export function endWithError(socket: Duplex, error: IsletError, headers: Record<string, string> = {}): void {
  if (ended.has(socket)) return
  ended.add(socket)
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = JSON.stringify(error.toBody())
  const all = {
    ...headers,
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  socket.write(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
  )
  socket.resume()
  linger(socket as Socket)
}
