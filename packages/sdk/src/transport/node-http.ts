// Node's own HTTP client. A small call costs a fifth of what it costs with fetch, there is no timeout for an answer, and all clients of
// the program share connections.
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { isNode, nodeProcess } from '../platform.ts'
import { connectLocally } from './local-socket.ts'
import type { Answer, Ask, Explain, Transport } from './transport.ts'

type Http = typeof import('node:http')

const agents = new Map<string, Agent>()
/** Chunks of 64 KiB to read ahead, so that the connection is rarely paused and resumed. */
const CHUNKS_AHEAD = 8
/** When an unused connection is closed. Servers and proxies wait longer, so no call is sent on a connection that they close. */
const IDLE_MS = 30_000

/** Undefined without Node, and for a URL that is not valid: fetch explains that. With a `socketPath` the URL is not used. */
export function nodeTransport(url: string, socketPath?: string): Transport | undefined {
  if (!URL.canParse(url)) return undefined
  const { protocol, hostname, port, pathname } = new URL(socketPath === undefined ? url : 'http://localhost')
  const http = moduleFor(protocol)
  if (!http) return undefined
  const { request } = http
  const agent = agentFor(protocol, http, socketPath)
  const to = { agent, protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port }
  const prefix = pathname.replace(/\/$/, '')
  return (path, ask) => {
    const { method, headers } = ask
    return answerTo(request({ ...to, path: prefix + path, method, headers } as RequestOptions), ask)
  }
}

/** Not an import: browsers do not have these modules, and bundlers must not look for them. Bun and Deno use their fetch. */
function moduleFor(protocol: string): Http | undefined {
  const name = protocol === 'https:' ? 'node:https' : 'node:http'
  return isNode() ? (nodeProcess()?.getBuiltinModule?.(name) as Http | undefined) : undefined
}

function agentFor(protocol: string, http: Http, socketPath: string | undefined): Agent {
  const key = socketPath ?? protocol
  let agent = agents.get(key)
  if (!agent) {
    const proxyEnv = process.env.NODE_USE_ENV_PROXY ? process.env : undefined
    const options = { keepAlive: true, noDelay: true, timeout: IDLE_MS, ...(proxyEnv && { proxyEnv }) }
    agent = new http.Agent(options as object)
    if (socketPath !== undefined)
      agent.createConnection = (_, done) => connectLocally(socketPath, { timeout: IDLE_MS }, done!)
    agents.set(key, agent)
  }
  return agent
}

function answerTo(request: ClientRequest, { body, signal }: Ask): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const abort = () => request.destroy()
    signal?.addEventListener('abort', abort, { once: true })
    // `error` may be emitted more than once, and always needs a listener.
    request.on('error', (error) => reject(failed(error)))
    let isAnswered = false
    request.once('response', (incoming) => {
      isAnswered = true
      // The server does not read what is sent after its answer.
      incoming.once('end', () => request.writableEnded || request.destroy())
      resolve(new NodeAnswer(incoming))
    })
    request.once('close', () => {
      signal?.removeEventListener('abort', abort)
      if (!isAnswered) reject(failed(new Error('closed')))
    })
    if (signal?.aborted) return abort()
    if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body)
    else if (body instanceof ArrayBuffer) request.end(new Uint8Array(body))
    else {
      const stream = body instanceof Blob ? body.stream() : (body as ReadableStream<Uint8Array>)
      send(stream, request).catch((error) => {
        reject(error)
        request.destroy()
      })
    }
  })
}

/** Sends with backpressure. If the connection closes, the source is cancelled; the answer says why. */
async function send(stream: ReadableStream<Uint8Array>, request: ClientRequest): Promise<void> {
  const reader = stream.getReader()
  request.once('close', () => reader.cancel().catch(() => {}))
  for (;;) {
    const { done, value } = await reader.read()
    if (request.destroyed) return
    if (done) return void request.end()
    if (!request.write(value)) await drained(request)
  }
}

function drained(request: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      request.off('drain', done).off('close', done)
      resolve()
    }
    if (request.destroyed) resolve()
    else request.on('drain', done).on('close', done)
  })
}

class NodeAnswer implements Answer {
  readonly status: number
  readonly statusText: string
  readonly #incoming: IncomingMessage
  #body: ReadableStream<Uint8Array<ArrayBuffer>> | undefined

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming
    this.status = incoming.statusCode ?? 0
    this.statusText = incoming.statusMessage ?? ''
    incoming.on('error', () => {}) // the reader gets the error
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300
  }

  async text(): Promise<string> {
    const chunks = await this.#chunks()
    return (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)).toString()
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const chunks = await this.#chunks()
    const whole = new Uint8Array(chunks.reduce((bytes, chunk) => bytes + chunk.length, 0))
    let at = 0
    for (const chunk of chunks) {
      whole.set(chunk, at)
      at += chunk.length
    }
    return whole.buffer
  }

  get body(): ReadableStream<Uint8Array<ArrayBuffer>> {
    this.#body ??= this.stream((error) => error)
    return this.#body
  }

  stream(explain: Explain): ReadableStream<Uint8Array<ArrayBuffer>> {
    return streamOf(this.#incoming, explain)
  }

  #chunks(): Promise<Buffer[]> {
    const incoming = this.#incoming
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.once('end', () => resolve(chunks))
      const onClose = (): void => {
        if (!incoming.readableEnded) reject(failed(incoming.errored ?? new Error('closed')))
      }
      incoming.once('close', onClose)
      if (incoming.closed) onClose()
    })
  }
}

/** Pauses the connection while enough chunks wait for the reader. */
function streamOf(incoming: IncomingMessage, explain: Explain): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isOver = false
  return new ReadableStream(
    {
      start(controller) {
        const finish = (): void => {
          if (isOver) return
          isOver = true
          if (incoming.readableEnded) controller.close()
          else controller.error(explain(failed(incoming.errored ?? new Error('closed'))))
        }
        incoming.pause()
        incoming.on('data', ({ buffer, byteOffset, byteLength }: Buffer<ArrayBuffer>) => {
          if (isOver) return
          weigh(byteLength)
          controller.enqueue(new Uint8Array(buffer, byteOffset, byteLength))
          if ((controller.desiredSize ?? 0) <= 0) incoming.pause()
        })
        incoming.once('end', finish).once('close', finish)
        if (incoming.closed) finish()
      },
      pull: () => void incoming.resume(),
      cancel: () => {
        isOver = true
        incoming.destroy()
      },
    },
    { highWaterMark: CHUNKS_AHEAD },
  )
}

/** In array elements of 8 bytes. V8 allocates a larger array outside the young generation. */
const MAX_WEIGHT = 8192
const weight: { last?: unknown[] } = {}

/**
 * Allocates as much garbage on the heap as the chunk has bytes. After every 16 MB of buffers V8 marks the whole heap, which costs more
 * than all the reading. A collection of the young generation takes half a millisecond and frees dropped chunks too, but it is triggered
 * by the size of *objects*, and a chunk is a small one.
 */
function weigh(chunkBytes: number): void {
  weight.last = new Array(Math.min(chunkBytes >> 3, MAX_WEIGHT))
}

function failed(cause: unknown): TypeError {
  return new TypeError('The connection failed.', { cause })
}
