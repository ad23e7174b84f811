// Passes a visitor's request to the program on a port of a sandbox, and its answer back: HTTP/1.1 on both sides, streamed, at the pace
// of the slower side. Each request has its own connection to the sandbox.
import type { ClientRequest, IncomingMessage, OutgoingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { IsletError } from '@islet/contract'
import type { Credentials } from '../access/credentials.ts'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { PreviewRecord } from '../db/previews.ts'
import { boundHead } from '../guest/dial/answer-head.ts'
import { request } from '../lib/http.ts'
import type { Log } from '../log.ts'
import { free } from '../wire/chunks.ts'
import type { Admission, PreviewAuth } from './auth.ts'
import { type Added, requestHeaders, responseHeaders, trailers } from './headers.ts'
import { MAX_HEADER_BYTES } from './listeners.ts'
import { sendPage } from './pages.ts'
import { reach } from './reach.ts'
import { checkRequest, isPlainlyFramed } from './request.ts'
import type { Visits } from './visits.ts'

export interface ProxyParts {
  sandboxes: Sandboxes
  auth: PreviewAuth
  credentials: Pick<Credentials, 'watch'>
  visits: Visits
  log: Log
  /** The scheme that visitors use. */
  scheme: 'http' | 'https'
}

/** A body that is no longer read is dropped for this long, so that the answer arrives and the connection can be kept. */
const DROP_MS = 10_000

/** Always answers, or breaks the connection if part of an answer is sent. */
export async function serve(
  parts: ProxyParts,
  record: PreviewRecord,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const left = new AbortController()
  outgoing.once('close', () => left.abort())
  incoming.on('error', () => {})
  outgoing.on('error', () => {})
  try {
    const leave = parts.visits.enter(record, () => incoming.socket.destroy(), { isTunnel: false })
    outgoing.once('close', leave)
    incoming.url = checkRequest(incoming)
    const secure = parts.scheme === 'https'
    const admission = await parts.auth.admit(record, incoming, { secure, mayRedirect: true })
    outgoing.once(
      'close',
      watch(parts, admission, () => incoming.socket.destroy()),
    )
    if (admission.redirect !== undefined) return sendOn(admission, incoming, outgoing)
    const { connection, autoResumed } = await reach(parts.sandboxes, record, left.signal)
    const upstream = ask(parts, record, incoming, { ...admission, upgrade: undefined }, connection)
    outgoing.once('close', () => upstream.destroy())
    passInformation(incoming, upstream, outgoing)
    passBody(incoming, upstream)
    const answer = await answerOf(upstream)
    relay(answer, outgoing, { setCookie: admission.setCookie, autoResumed })
    outgoing.once('finish', () => dropRest(incoming))
  } catch (error) {
    fail(error, parts, record, incoming, outgoing)
  }
}

/** Calls `end` when the token that admitted the visitor is revoked or expires. */
export function watch({ credentials }: ProxyParts, { holder }: Admission, end: () => void): () => void {
  return holder ? credentials.watch(holder, end) : () => {}
}

/** A request to the program inside, not yet sent. */
export function ask(
  { scheme }: ProxyParts,
  { port }: PreviewRecord,
  incoming: IncomingMessage,
  admission: Admission & { upgrade: string | undefined },
  connection: Duplex,
): ClientRequest {
  const upstream = request({
    method: incoming.method,
    path: admission.path,
    headers: requestHeaders(incoming, admission, { scheme, defaultHost: `localhost:${port}` }),
    setHost: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    createConnection: () => connection,
  })
  boundHead(upstream, { maxBytes: MAX_HEADER_BYTES })
  // Before the answer, `answerOf` rejects; after it, the answer breaks off.
  upstream.on('error', () => {})
  return upstream
}

/** Rejects if no answer comes. */
export function answerOf(upstream: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    upstream.once('response', resolve)
    upstream.once('error', (cause) => reject(noAnswer(cause)))
    upstream.once('close', () => reject(noAnswer()))
  })
}

export function relay(answer: IncomingMessage, outgoing: ServerResponse, added: Added): void {
  answer.on('error', () => {})
  try {
    // The answer may have broken off already, in the same packet as its head.
    if (!isPlainlyFramed(answer) || answer.destroyed) throw noAnswer()
    outgoing.writeHead(answer.statusCode!, answer.statusMessage, responseHeaders(answer, added))
  } catch (cause) {
    answer.destroy()
    // Node keeps a status message that it refused, and would refuse the error page too.
    outgoing.statusMessage = ''
    throw noAnswer(cause)
  }
  answer.once('close', () => !answer.complete && outgoing.destroy())
  // Runs after Node's own listener, which has copied the bytes.
  answer.socket.on('data', free)
  pour(answer, outgoing)
  answer.once('end', () => {
    const last = trailers(answer)
    if (last.length > 0 && outgoing.chunkedEncoding) outgoing.addTrailers(last)
    outgoing.end()
  })
  flushSoon(outgoing, answer)
}

/** The error to show in place of the program's answer. */
export function asVisible(
  error: unknown,
  { log }: ProxyParts,
  { sandboxId, port }: PreviewRecord,
): IsletError {
  if (error instanceof IsletError && error.code !== 'internal') return error
  log.error({ err: error, sandbox: sandboxId, port }, 'preview failed')
  return new IsletError('internal')
}

/** A program may answer before it has read the whole body. */
function passBody(incoming: IncomingMessage, upstream: ClientRequest): void {
  incoming.once('end', () => {
    const last = trailers(incoming)
    if (last.length > 0) upstream.addTrailers(last)
    upstream.end()
  })
  incoming.pipe(upstream, { end: false })
  flushSoon(upstream, incoming)
}

function passInformation(incoming: IncomingMessage, upstream: ClientRequest, outgoing: ServerResponse): void {
  if (incoming.headers.expect !== undefined)
    upstream.on('continue', () => !upstream.destroyed && !outgoing.headersSent && outgoing.writeContinue())
  upstream.on('information', ({ statusCode, headers }) => {
    if (statusCode !== 103 || headers.link === undefined) return
    if (upstream.destroyed || outgoing.headersSent) return
    try {
      outgoing.writeEarlyHints({ link: headers.link })
    } catch {
      // Not a list of links: an early hint may be dropped.
    }
  })
}

/**
 * Copies a body at the reader's pace. Pieces that arrive in one turn of the event loop are written as one: one-byte chunks written
 * separately would take a thousand times their size in memory.
 */
function pour(from: IncomingMessage, to: OutgoingMessage): void {
  let pieces: Buffer[] = []
  const flush = (): void => {
    if (pieces.length === 0 || to.destroyed) return
    const whole = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
    if (pieces.length > 1) for (const piece of pieces) free(piece)
    pieces = []
    // Without this, tens of megabytes of sent bytes wait for garbage collection.
    if (to.write(whole, () => free(whole))) return
    from.pause()
    to.once('drain', () => from.resume())
  }
  from.on('data', (piece: Buffer) => {
    if (pieces.push(piece) === 1) setImmediate(flush)
  })
  from.once('end', flush)
}

/** Sends the head with the first piece of the body, or alone if none follows at once. */
function flushSoon(message: OutgoingMessage, body: IncomingMessage): void {
  let hasBegun = false
  const begin = (): void => {
    hasBegun = true
  }
  body.once('data', begin).once('end', begin)
  setImmediate(() => !hasBegun && !message.destroyed && message.flushHeaders())
}

function sendOn(
  { redirect, setCookie }: Admission,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): void {
  const headers = {
    Location: redirect,
    'Set-Cookie': setCookie,
    'Cache-Control': 'no-store',
    'Content-Length': 0,
  }
  outgoing.writeHead(302, { ...headers, 'Referrer-Policy': 'no-referrer' })
  outgoing.end()
  dropRest(incoming)
}

function fail(
  error: unknown,
  parts: ProxyParts,
  record: PreviewRecord,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): void {
  if (outgoing.destroyed || outgoing.headersSent) {
    outgoing.destroy()
    return
  }
  // A client with Expect may or may not send its body, so the next request could not be told from it.
  if (incoming.headers.expect !== undefined) outgoing.shouldKeepAlive = false
  sendPage(asVisible(error, parts, record), incoming, outgoing)
  dropRest(incoming)
}

function dropRest(incoming: IncomingMessage): void {
  if (incoming.complete || incoming.destroyed) return
  incoming.unpipe()
  incoming.resume()
  const timer = setTimeout(() => incoming.socket.destroy(), DROP_MS)
  incoming.once('close', () => clearTimeout(timer))
}

function noAnswer(cause?: unknown): IsletError {
  return new IsletError('preview_failed', undefined, { cause })
}
