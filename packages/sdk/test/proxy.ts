// A door in front of a real server: it writes down what passes, and breaks connections the way networks and gateways do.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export interface Asked {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
}

export type Fault =
  /** The connection ends: before the server sees the request, after it has done it, or within its answer. */
  | { cut: 'request' | 'answer' }
  | { cut: 'body' | 'body cleanly'; afterBytes: number }
  /** A gateway answers in place of the server. */
  | { status: number; body: string }

export interface TestProxy extends AsyncDisposable {
  url: string
  /** WebSockets too. */
  asked: Asked[]
  /** Breaks every WebSocket. */
  cutSockets(): void
  /** WebSockets are let in once `release` is called; `reached` says that one waits. */
  hold(): { reached: Promise<void>; release(): void }
}

export async function startProxy(
  target: string,
  faultOf: (asked: Asked, count: number) => Fault | undefined = () => undefined,
): Promise<TestProxy> {
  const { hostname, port } = new URL(target)
  const asked: Asked[] = []
  const sockets = new Set<Duplex>()
  let waitAtDoor: () => Promise<void> = async () => {}

  const note = ({ method = '', url = '', headers }: IncomingMessage): Fault | undefined => {
    const { pathname, searchParams } = new URL(url, 'http://proxy')
    asked.push({ method, path: pathname, query: searchParams, headers })
    return faultOf(asked.at(-1)!, asked.length)
  }
  const server = createServer((incoming, outgoing) => {
    const fault = note(incoming)
    if (fault && 'status' in fault) {
      incoming.resume().on('end', () => outgoing.writeHead(fault.status).end(fault.body))
      return
    }
    if (fault?.cut === 'request') return void incoming.socket.destroy()
    const { method, url: path, headers } = incoming
    const upstream = request({ hostname, port, method, path, headers }, (answer) => {
      if (fault?.cut === 'answer') answer.resume().on('end', () => incoming.socket.destroy())
      else passOn(answer, outgoing, fault)
    })
    upstream.on('error', () => incoming.socket.destroy())
    outgoing.on('close', () => outgoing.writableFinished || upstream.destroy())
    incoming.pipe(upstream)
  })

  server.on('upgrade', async (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const fault = note(incoming)
    sockets.add(socket.on('error', () => {}))
    if (fault) return socket.destroy()
    await waitAtDoor()
    const upstream: Socket = connect(Number(port), hostname)
    upstream.on('error', () => {})
    const lines = incoming.rawHeaders.flatMap((name, at, all) => (at % 2 ? [] : `${name}: ${all[at + 1]}`))
    upstream.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    upstream.write(head)
    socket.pipe(upstream).pipe(socket)
    socket.on('close', () => upstream.destroy())
    upstream.on('close', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const cutSockets = () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    cutSockets,
    hold() {
      const reached = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      waitAtDoor = () => {
        reached.resolve()
        return released.promise
      }
      return { reached: reached.promise, release: released.resolve }
    },
    async [Symbol.asyncDispose]() {
      cutSockets()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function passOn(answer: IncomingMessage, outgoing: ServerResponse, fault: Fault | undefined): void {
  outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
  if (!fault || !('afterBytes' in fault)) return void answer.pipe(outgoing)
  let left = fault.afterBytes
  answer.on('data', (chunk: Buffer) => {
    if (left <= 0) return
    const piece = chunk.subarray(0, left)
    left -= piece.length
    outgoing.write(piece, () => {
      if (left > 0) return
      if (fault.cut === 'body') outgoing.destroy()
      else outgoing.end()
    })
  })
}
