// A server for tests of how the client asks: it answers what the test says and remembers what it was asked.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type WebSocket, WebSocketServer } from 'ws'

export interface Asked {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  body: string
}

export interface Answer {
  status?: number
  json?: unknown
  body?: string | Uint8Array
  /** Cuts the connection instead of answering. */
  hangUp?: true
  /** Never answers. */
  silent?: true
}

export interface Stub extends AsyncDisposable {
  url: string
  asked: Asked[]
}

export async function startStub(
  answer: (asked: Asked, count: number) => Answer,
  onSocket: (socket: WebSocket, request: IncomingMessage, count: number) => void = (socket) => socket.close(),
): Promise<Stub> {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stub')
    const { method = '', headers } = request
    const body = await text(request).catch(() => '')
    asked.push({ method, path: pathname, query: searchParams, headers, body })
    const { status = 200, json, body: bytes, hangUp, silent } = answer(asked.at(-1)!, asked.length)
    if (silent) return
    if (hangUp) return request.socket.destroy()
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(bytes ?? (json === undefined ? undefined : JSON.stringify(json)))
  })
  const sockets = new WebSocketServer({ server })
  let connections = 0
  sockets.on('connection', (socket, request) => onSocket(socket, request, ++connections))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export const SANDBOX = {
  id: 'sbx-aaaaaaaaaaaaaaaaaaaa',
  name: 'first',
  description: null,
  status: 'running',
  reason: null,
  runtime: 'base',
  image: 'img-0123456789abcdef',
  engine: 'oci',
  isolation: 'namespace',
  metadata: {},
  project: null,
  env: {},
  resources: { memoryBytes: 1, cpuMillis: 1, diskBytes: 1, pids: 1 },
  network: { enabled: false },
  user: 'user',
  workdir: '/home/user',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  stoppedAt: null,
} as const

export const PROCESS = {
  id: 'prc-aaaaaaaaaaaaaaaaaaaa',
  sandboxId: SANDBOX.id,
  command: 'true',
  status: 'running',
  pid: 7,
  cwd: '/home/user',
  user: 'user',
  terminal: false,
  startedAt: '2026-01-01T00:00:00.000Z',
  endedAt: null,
  outputBytes: 0,
  result: null,
} as const

export const RESULT = { exitCode: 0, signal: null, timedOut: false, oom: false, durationMs: 1 } as const
export const EXEC_RESULT = {
  ...RESULT,
  processId: PROCESS.id,
  stdout: 'hi\n',
  stderr: '',
  truncated: false,
} as const
