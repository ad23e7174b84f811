// Calls as programs inside a sandbox make them: through its socket.
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { ErrorBody, ExecResult } from '@islet/contract'
import type { TestApi } from './server.ts'

export interface InsideAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  body: any
  code: string | undefined
}

export interface InsideCall {
  token?: string
  body?: unknown
  headers?: Record<string, string>
}

export class InsideClient {
  readonly socketPath: string
  readonly env: Record<string, string>

  static async of(api: TestApi, sandboxId: string): Promise<InsideClient> {
    const command = 'command -v islet-signal; env'
    const response = await api.call('POST', `/v1/sandboxes/${sandboxId}/exec`, { command })
    const [program, ...lines] = ((await response.json()) as ExecResult).stdout.trim().split('\n')
    return new InsideClient(`${dirname(program!)}/inside.sock`, lines)
  }

  private constructor(socketPath: string, env: string[]) {
    this.socketPath = socketPath
    this.env = Object.fromEntries(env.map((line) => [line.split('=')[0]!, line.slice(line.indexOf('=') + 1)]))
  }

  get token(): string {
    return this.env.ISLET_STORE_TOKEN!
  }

  async call(
    method: string,
    path: string,
    { token, body, headers = {} }: InsideCall = {},
  ): Promise<InsideAnswer> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const outgoing = request({
      socketPath: this.socketPath,
      method,
      path,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(text !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        }),
        ...headers,
      },
    })
    outgoing.end(text)
    const [incoming] = await once(outgoing, 'response')
    let answer = ''
    for await (const chunk of incoming) answer += chunk
    const parsed = answer === '' ? undefined : JSON.parse(answer)
    return { status: incoming.statusCode, body: parsed, code: (parsed as ErrorBody | undefined)?.error?.code }
  }

  /** A bare connection. */
  async connect(): Promise<Socket> {
    const socket = connect(this.socketPath)
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }

  /** All that is answered to these bytes until the end. */
  async raw(text: string): Promise<string> {
    const socket = await this.connect()
    socket.write(text)
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    await once(socket, 'close')
    return answer
  }
}
