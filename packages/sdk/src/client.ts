// One call of the native API: address, key, body, answer, error. The parts of Sandbox and Islet are thin over this.
import { type BodyOf, type ResponseOf, ROUTES, type Route, type RouteName, routePath } from '@islet/contract'
import { abortError, ClientError, errorFromBody, type WireError } from './errors.ts'
import { type ClientOptions, resolveSettings } from './settings.ts'
import { type Content, relay, toBody } from './transport/body.ts'
import { patientFetch } from './transport/fetch.ts'
import { readLines } from './transport/lines.ts'
import { DEFAULT_RETRIES, withRetries } from './transport/retry.ts'
import { openSocket, type Socket, type SocketConstructor } from './transport/socket.ts'

export interface CallOptions<Name extends RouteName = RouteName> {
  params?: Record<string, string>
  query?: Query
  body?: BodyOf<Name>
  content?: Content
  headers?: Record<string, string>
  idempotencyKey?: string
  signal?: AbortSignal
}

export type Query = Record<string, string | number | boolean | readonly string[] | undefined>

export class Client {
  readonly url: string
  readonly #apiKey: string | undefined
  readonly #fetch: typeof globalThis.fetch
  readonly #WebSocket: SocketConstructor
  readonly #retries: number

  constructor(options: ClientOptions = {}) {
    const { url, apiKey } = resolveSettings(options)
    this.url = url
    this.#apiKey = apiKey
    this.#fetch = options.fetch ?? patientFetch
    this.#WebSocket = options.WebSocket ?? (globalThis.WebSocket as unknown as SocketConstructor)
    this.#retries = options.retries ?? DEFAULT_RETRIES
  }

  /** A call with a JSON answer (or none), checked against the contract. */
  call<Name extends RouteName>(name: Name, options: CallOptions<Name> = {}): Promise<ResponseOf<Name>> {
    return this.#request(name, options, async (response) => {
      const text = await response.text()
      const schema = (ROUTES[name] as Route).response
      if (schema === null || typeof schema === 'string') return undefined as ResponseOf<Name>
      const parsed = schema.safeParse(parseJson(text))
      if (parsed.success) return parsed.data as ResponseOf<Name>
      throw new ClientError('bad_response', `The answer to ${name} is not as agreed.`, {
        cause: parsed.error,
      })
    })
  }

  bytes<Name extends RouteName>(name: Name, options: CallOptions<Name> = {}): Promise<Uint8Array> {
    return this.#request(name, options, async (response) => new Uint8Array(await response.arrayBuffer()))
  }

  /** A call whose answer the caller reads at its own pace. */
  stream<Name extends RouteName>(
    name: Name,
    options: CallOptions<Name> = {},
  ): Promise<ReadableStream<Uint8Array>> {
    return this.#request(name, options, async ({ body }) => {
      return relay(body, (error) => this.#explain(error, options.signal))
    })
  }

  /** A call that answers with one JSON value per line. */
  async *lines<Name extends RouteName>(name: Name, options: CallOptions<Name> = {}): AsyncGenerator<unknown> {
    for await (const line of readLines(await this.stream(name, options))) yield parseJson(line)
  }

  socket(name: RouteName, options: Pick<CallOptions, 'params' | 'query'> = {}): Socket {
    return openSocket(this.#WebSocket, this.#address(name, options), this.#apiKey)
  }

  #request<Name extends RouteName, T>(
    name: Name,
    options: CallOptions<Name>,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { signal, idempotencyKey } = options
    const isSafe = ROUTES[name].method === 'GET' || idempotencyKey !== undefined
    const attempt = async (): Promise<T> => {
      try {
        const response = await this.#send(name, options)
        if (!response.ok) throw await errorOf(response)
        return await read(response)
      } catch (error) {
        throw this.#explain(error, signal)
      }
    }
    return withRetries(attempt, { retries: isSafe ? this.#retries : 0, signal })
  }

  async #send<Name extends RouteName>(name: Name, options: CallOptions<Name>): Promise<Response> {
    options.signal?.throwIfAborted()
    const headers: Record<string, string> = { ...options.headers }
    if (this.#apiKey !== undefined) headers.Authorization = `Bearer ${this.#apiKey}`
    if (options.idempotencyKey !== undefined) headers['Idempotency-Key'] = options.idempotencyKey
    const init: RequestInit & { duplex?: 'half' } = { method: ROUTES[name].method, headers }
    if (options.signal) init.signal = options.signal
    if (options.content !== undefined) {
      headers['Content-Type'] = 'application/octet-stream'
      Object.assign(init, await toBody(options.content))
    } else if (options.body !== undefined) {
      headers['Content-Type'] = 'application/json'
      init.body = JSON.stringify(options.body)
    }
    return this.#fetch(this.#address(name, options), init)
  }

  #address(name: RouteName, { params, query }: Pick<CallOptions, 'params' | 'query'>): string {
    const search = new URLSearchParams()
    for (const [key, value] of Object.entries(query ?? {})) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item !== undefined) search.append(key, String(item))
      }
    }
    return this.url + routePath(name, params) + (search.size > 0 ? `?${search}` : '')
  }

  /** Aborted, a server's error, or a connection that failed: nothing else leaves a call. */
  #explain(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return abortError(signal)
    if (!(error instanceof TypeError)) return error
    const cause = (error as { cause?: { code?: string; message?: string } }).cause
    const reason = cause?.code ?? cause?.message ?? error.message
    return new ClientError('connection_failed', `No answer from ${this.url} (${reason}).`, { cause: error })
  }
}

async function errorOf(response: Response): Promise<Error> {
  const body = parseJson(await response.text(), null) as { error?: WireError } | null
  if (typeof body?.error?.code === 'string') return errorFromBody(body.error)
  const code = response.status >= 502 && response.status <= 504 ? 'connection_failed' : 'bad_response'
  return new ClientError(code, `The answer was ${response.status} ${response.statusText}, not one of Islet.`)
}

function parseJson(text: string, otherwise?: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (otherwise !== undefined) return otherwise
    throw new ClientError('bad_response', 'The answer is not valid JSON.', { cause })
  }
}
