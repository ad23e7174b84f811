// Requests for another protocol (WebSocket or any other): after the program agrees, bytes are copied both ways.
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { IsletError } from '@islet/contract'
import type { PreviewRecord } from '../db/previews.ts'
import { ServerResponse } from '../lib/http.ts'
import { hasBody } from '../listen/request.ts'
import { type Added, upgradeHead } from './headers.ts'
import { endSoon, endWithPage } from './pages.ts'
import { answerOf, ask, asVisible, type ProxyParts, relay, watch } from './proxy.ts'
import { reach } from './reach.ts'
import { checkRequest } from './request.ts'

const ANSWER_MS = 30_000

interface Agreed {
  answer: IncomingMessage
  connection: Duplex
  /** Bytes that came with the head. */
  first: Buffer
}

export async function upgrade(
  parts: ProxyParts,
  record: PreviewRecord,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const left = new AbortController()
  socket.once('close', () => left.abort())
  socket.on('error', () => {})
  try {
    const leave = parts.visits.enter(record, () => socket.destroy(), { isTunnel: true })
    socket.once('close', leave)
    incoming.url = checkRequest(incoming)
    if (hasBody(incoming)) throw new IsletError('bad_request', 'A request for another protocol has no body.')
    const secure = parts.scheme === 'https'
    const admission = await parts.auth.admit(record, incoming, { secure, mayRedirect: false })
    socket.once(
      'close',
      watch(parts, admission, () => socket.destroy()),
    )
    const { connection, autoResumed } = await reach(parts.sandboxes, record, left.signal)
    const upstream = ask(
      parts,
      record,
      incoming,
      { ...admission, upgrade: incoming.headers.upgrade },
      connection,
    )
    const result = await outcome(upstream)
    const added = { setCookie: admission.setCookie, autoResumed }
    if ('first' in result) {
      socket.write(upgradeHead(result.answer, added), 'latin1')
      join(socket, head, result)
    } else decline(result, incoming, socket, added)
  } catch (error) {
    if (socket.writable) endWithPage(asVisible(error, parts, record), incoming, socket)
    else socket.destroy()
  }
}

/** The visitor's socket is not read until the answer, so a visitor who leaves is not noticed: hence the timeout. */
async function outcome(upstream: ClientRequest): Promise<Agreed | IncomingMessage> {
  const timer = setTimeout(() => upstream.destroy(), ANSWER_MS)
  try {
    const result = Promise.race([agreed(upstream), answerOf(upstream)])
    upstream.end()
    return await result
  } finally {
    clearTimeout(timer)
  }
}

function agreed(upstream: ClientRequest): Promise<Agreed> {
  return new Promise((resolve) => {
    upstream.once('upgrade', (answer, connection, first) => resolve({ answer, connection, first }))
  })
}

/** Each direction ends by itself; when the program's connection closes, the visitor's is closed too. */
function join(socket: Duplex, head: Buffer, { connection, first }: Agreed): void {
  connection.once('close', () => (socket as Socket).destroySoon())
  if (head.length > 0) connection.write(head)
  if (first.length > 0) socket.write(first)
  socket.pipe(connection)
  connection.pipe(socket)
}

/** Passes on an ordinary answer and ends the connection: later input of the visitor is for the other protocol. */
function decline(answer: IncomingMessage, incoming: IncomingMessage, socket: Duplex, added: Added): void {
  const outgoing = new ServerResponse(incoming)
  outgoing.shouldKeepAlive = false
  outgoing.assignSocket(socket as Socket)
  outgoing.on('error', () => {})
  outgoing.once('finish', () => {
    outgoing.detachSocket(socket as Socket)
    endSoon(socket)
  })
  relay(answer, outgoing, added)
}
