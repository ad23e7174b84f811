// A real server whose sandbox shares the network of this machine: a program of the test's own is what listens inside.
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type RequestOptions,
  request,
  type Server,
} from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { CreatePreview, Preview } from '@islet/contract'
import { startTestApi, type TestApi, type TestApiOptions } from './server.ts'

export interface Lab extends AsyncDisposable {
  api: TestApi
  sandboxId: string
  preview(input: CreatePreview): Promise<Preview>
  /** Starts a program and makes a preview of its port. */
  show(app: RequestListener, input?: Partial<CreatePreview>): Promise<Shown>
  showTcp(serve: (socket: Socket) => void): Promise<Shown>
}

export interface Shown extends Preview {
  app: Server | ReturnType<typeof createTcpServer>
}

export async function openLab(options: TestApiOptions = {}): Promise<Lab> {
  const api = await startTestApi(options)
  const { id } = await api.createSandbox()
  const servers: Shown['app'][] = []
  const preview: Lab['preview'] = async (input) => {
    const response = await api.call('POST', `/v1/sandboxes/${id}/previews`, input)
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
    return (await response.json()) as Preview
  }
  const listen = async (app: Shown['app'], input: Partial<CreatePreview> = {}): Promise<Shown> => {
    servers.push(app)
    return { ...(await preview({ port: await listenOn(app), ...input })), app }
  }
  return {
    api,
    sandboxId: id,
    preview,
    show: (app, input) => listen(createServer({ requestTimeout: 0 }, app), input),
    showTcp: (serve) =>
      listen(
        createTcpServer({ allowHalfOpen: true }, (socket) => {
          socket.on('error', () => {})
          serve(socket)
        }),
      ),
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]()
      for (const server of servers) {
        server.close()
        if ('closeAllConnections' in server) server.closeAllConnections()
      }
    },
  }
}

export async function listenOn(
  server:
    | ({ listen: Server['listen']; address: Server['address'] } & Server)
    | ReturnType<typeof createTcpServer>,
  host = '127.0.0.1',
): Promise<number> {
  server.listen(0, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

export async function freePort(): Promise<number> {
  const server = createTcpServer()
  const port = await listenOn(server)
  server.close()
  await once(server, 'close')
  return port
}

export interface Answer {
  status: number
  message: IncomingMessage
  /** On a connection that had been used before. */
  isReused: boolean
  body: Buffer
  text: string
}

/** As http.request says it, so that a test has every header in its hands. */
export async function get(
  url: string,
  options: RequestOptions & { body?: string | Buffer } = {},
): Promise<Answer> {
  const { body, ...rest } = options
  const sent = request(url, { agent: false, ...rest })
  sent.end(body)
  const [message] = (await once(sent, 'response')) as [IncomingMessage]
  const parts: Buffer[] = []
  for await (const part of message) parts.push(part as Buffer)
  const bytes = Buffer.concat(parts)
  return {
    status: message.statusCode!,
    message,
    isReused: sent.reusedSocket,
    body: bytes,
    text: bytes.toString(),
  }
}

/** Sends exactly these bytes and answers with all that comes until the other side closes. */
export async function raw(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), new URL(url).hostname.replace(/[[\]]/g, ''))
  socket.on('error', () => {})
  socket.write(text, 'latin1')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  await once(socket, 'close')
  return answer
}

/** Whether anything listens there. */
export async function accepts(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), new URL(url).hostname)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

export function closing(t: TestContext, lab: AsyncDisposable): void {
  t.after(() => lab[Symbol.asyncDispose]())
}
