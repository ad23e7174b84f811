// Requests as bytes on a socket, which no client library would send.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { TestServer } from './server.ts'

export interface RawAnswer {
  status: number
  body: string
}

export interface RawRequest {
  method?: string
  path: string
  headers?: Record<string, string>
  /** Sent piece by piece until the server answers. */
  body?: Iterable<Uint8Array | string>
}

const DEADLINE_MS = 30_000

/** Rejects when there is no whole answer within the deadline. */
export async function rawRequest(server: TestServer, request: RawRequest): Promise<RawAnswer> {
  const { method = 'GET', path, body = [] } = request
  const { host, hostname, port } = new URL(server.url)
  const headers = {
    Host: host,
    Authorization: `Bearer ${server.key}`,
    Connection: 'close',
    ...request.headers,
  }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = connect({ host: hostname, port: Number(port), signal: AbortSignal.timeout(DEADLINE_MS) })
  let answer = ''
  let isOver = false
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  const ended = once(socket, 'close').finally(() => {
    isOver = true
  })
  ended.catch(() => {})
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(`${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n`)
  for (const piece of body) {
    if (isOver || answer !== '') break
    // Whether it is read or the connection ends, whichever comes first.
    if (!socket.write(piece))
      await Promise.race([once(socket, 'drain').catch(() => {}), ended.catch(() => {})])
  }
  await ended
  const [, status] = /^HTTP\/1\.1 (\d+)/.exec(answer) ?? []
  if (status === undefined) throw new Error(`${method} ${path.slice(0, 100)}: no answer`)
  return { status: Number(status), body: unchunked(answer) }
}

function unchunked(answer: string): string {
  const at = answer.indexOf('\r\n\r\n')
  const text = Buffer.from(answer.slice(at + 4), 'latin1').toString('utf8')
  if (!/^transfer-encoding: chunked/im.test(answer.slice(0, at))) return text
  return text.replace(/(^|\r\n)[0-9a-f]+\r\n/g, '').replace(/\r\n$/, '')
}
