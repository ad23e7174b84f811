// Answers, written straight to Node's response: a Response object costs every small answer 40 µs, and web streams cost
// uploads a third of their throughput.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Route } from '@islet/contract'
import { releasing } from '../wire/chunks.ts'
import { asErrorLine } from './errors.ts'
import { Answer, Bytes, JsonText, Lines } from './route.ts'

/** A client that does not read its progress lines loses some rather than filling the memory. */
const MAX_WAITING_LINE_BYTES = 1024 * 1024

export async function send(
  route: Route,
  result: unknown,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  if (result instanceof Bytes) return sendBytes(result, incoming, outgoing)
  if (result instanceof Lines) return sendLines(result, outgoing)
  if (route.response === null) outgoing.writeHead(route.status).end()
  else if (result instanceof JsonText) sendText(outgoing, route.status, 'application/json', result.text)
  else if (result instanceof Answer) sendJson(outgoing, result.status, result.value)
  else sendJson(outgoing, route.status, result)
}

export function sendJson(outgoing: ServerResponse, status: number, value: unknown): void {
  sendText(outgoing, status, 'application/json', JSON.stringify(value))
}

export function sendText(outgoing: ServerResponse, status: number, type: string, text: string): void {
  outgoing.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) })
  outgoing.end(text)
}

async function sendBytes(
  { body, headers, status }: Bytes,
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
    if (!outgoing.write(chunk, releasing(body, chunk))) await drained(outgoing)
  }
  if (expected === undefined || sent === Number(expected)) outgoing.end()
  else outgoing.destroy()
}

/** Resolves when there is room again, or nobody to make room for. */
function drained(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed || !outgoing.writableNeedDrain) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done).off('close', done)
      resolve()
    }
    outgoing.on('drain', done).on('close', done)
  })
}

async function sendLines({ work }: Lines<unknown>, outgoing: ServerResponse): Promise<void> {
  const emit = (line: unknown): void => {
    if (!outgoing.headersSent) outgoing.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    if (outgoing.writableLength < MAX_WAITING_LINE_BYTES) outgoing.write(`${JSON.stringify(line)}\n`)
  }
  try {
    await work(emit)
  } catch (error) {
    if (!outgoing.headersSent) throw error
    outgoing.write(`${JSON.stringify(asErrorLine(error))}\n`)
  }
  outgoing.end()
}
