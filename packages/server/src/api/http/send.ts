// Writes answers to Node's response. A long answer is sent in pieces, at the client's pace; if the client reads nothing, it is given up.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { IsletError, type Route } from '@islet/contract'
import type { Hold } from '../../control/held.ts'
import { release } from '../../data/output/kept-bytes.ts'
import { releasing } from '../../wire/chunks.ts'
import { Answer, Bytes, JsonText, Lines } from '../route.ts'
import { asErrorLine } from './errors.ts'
import { jsonPieces, sizeOf, slices } from './json.ts'

/** Beyond this, progress lines are dropped for a client that does not read them. */
const MAX_WAITING_LINE_BYTES = 1024 * 1024
/** While nothing happens, an empty line is sent this often: clients and proxies give up silent connections. */
const QUIET_LINE_MS = 20_000
/** JSON up to this size is sent in one piece. */
const SHORT_BYTES = 64 * 1024
/** The kernel buffers at least this much per connection. */
const KERNEL_BYTES = 16 * 1024
/** An answer that makes no progress for this long is given up. */
const STALL_MS = 60_000

export async function send(
  route: Route,
  result: unknown,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  hold: Hold,
): Promise<void> {
  if (result instanceof Bytes) return sendBytes(result, incoming, outgoing)
  if (result instanceof Lines) return sendLines(result, outgoing)
  if (route.response === null) outgoing.writeHead(route.status).end()
  else if (result instanceof JsonText) await sendJsonText(result.text, route.status, outgoing, hold)
  else if (result instanceof Answer) await sendJson(result.value, result.status, outgoing, hold)
  else await sendJson(result, route.status, outgoing, hold)
}

async function sendJson(value: unknown, status: number, outgoing: ServerResponse, hold: Hold): Promise<void> {
  if (sizeOf(value, SHORT_BYTES) <= SHORT_BYTES) {
    sendText(outgoing, status, 'application/json', JSON.stringify(value))
    return
  }
  try {
    // Values read piece by piece are counted where they are kept.
    const size = sizeOf(value, Number.MAX_SAFE_INTEGER)
    if (Number.isFinite(size)) takeOrRefuse(hold, size)
    await sendPieces(jsonPieces(value), status, outgoing)
  } finally {
    release(value)
  }
}

async function sendJsonText(
  text: string,
  status: number,
  outgoing: ServerResponse,
  hold: Hold,
): Promise<void> {
  if (text.length <= SHORT_BYTES) return sendText(outgoing, status, 'application/json', text)
  takeOrRefuse(hold, text.length)
  await sendPieces(slices(text), status, outgoing)
}

function takeOrRefuse(hold: Hold, bytes: number): void {
  if (!hold.take(bytes)) throw new IsletError('too_many_requests', 'Too many large answers wait to be read.')
}

export function sendText(outgoing: ServerResponse, status: number, type: string, text: string): void {
  outgoing.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) })
  outgoing.end(text)
  if (text.length > KERNEL_BYTES) outgoing.setTimeout(STALL_MS)
}

async function sendPieces(pieces: Iterable<string>, status: number, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(status, { 'Content-Type': 'application/json' })
  for (const piece of pieces) {
    if (outgoing.destroyed) return
    if (!outgoing.write(piece)) await drained(outgoing)
    // Lets other requests run: a fast reader never makes this loop wait.
    await setImmediate()
  }
  outgoing.end()
  await closedOrFinished(outgoing)
}

async function sendBytes(
  { body, headers, status, stallMs }: Bytes,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  outgoing.writeHead(status, headers)
  if (body === undefined || incoming.method === 'HEAD') {
    outgoing.end()
    return
  }
  const expected = headers['Content-Length']
  let sent = 0
  for await (const chunk of body) {
    sent += chunk.length
    if (outgoing.destroyed || (expected !== undefined && sent > Number(expected))) break
    if (!outgoing.write(chunk, releasing(body, chunk))) await drained(outgoing, stallMs)
  }
  if (expected === undefined || sent === Number(expected)) outgoing.end()
  else outgoing.destroy()
}

/** Resolves when the response can take more, or is closed. */
async function drained(outgoing: ServerResponse, stallMs = STALL_MS): Promise<void> {
  if (outgoing.destroyed || !outgoing.writableNeedDrain) return
  // If the kernel takes nothing until then, Node breaks the connection.
  outgoing.setTimeout(stallMs)
  await either(outgoing, 'drain')
  outgoing.setTimeout(0)
}

async function closedOrFinished(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed || outgoing.writableFinished) return
  outgoing.setTimeout(STALL_MS)
  await either(outgoing, 'finish')
}

function either(outgoing: ServerResponse, event: 'drain' | 'finish'): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off(event, done).off('close', done)
      resolve()
    }
    outgoing.on(event, done).on('close', done)
  })
}

async function sendLines({ work }: Lines<unknown>, outgoing: ServerResponse): Promise<void> {
  const emit = (line: unknown): void => {
    if (!outgoing.headersSent) outgoing.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    if (outgoing.writableLength < MAX_WAITING_LINE_BYTES) outgoing.write(`${JSON.stringify(line)}\n`)
  }
  const quiet = setInterval(() => outgoing.headersSent && outgoing.write('\n'), QUIET_LINE_MS)
  try {
    await work(emit)
  } catch (error) {
    if (!outgoing.headersSent) throw error
    outgoing.write(`${JSON.stringify(asErrorLine(error))}\n`)
  } finally {
    clearInterval(quiet)
  }
  outgoing.end()
}
