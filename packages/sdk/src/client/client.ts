// One call of the HTTP API: URL, key, body, answer, error.
import {
  type BodyOf,
  IsletError,
  LIMITS,
  type ResponseOf,
  ROUTES,
  type RouteName,
  routePath,
  type SandboxToken,
  type Shape,
  sandboxTokenShape,
} from '@islet/contract/client'
import { abortError, ClientError, errorFromBody, hasCode, type WireError } from '../errors.ts'
import { type Content, isReplayable, relay, toBody } from '../transport/body.ts'
import { readLines } from '../transport/lines.ts'
import { DEFAULT_RETRIES, withRetries } from '../transport/retry.ts'
import { openSocket, platformSocket, type Socket, type SocketConstructor } from '../transport/socket.ts'
import { type Answer, type Ask, type Transport, transportTo } from '../transport/transport.ts'
import { checked } from './checked.ts'
import { type Claims, Credential, claimsOf } from './credential.ts'
import { ownerCheck } from './listener-owner.ts'
import { type ClientOptions, keyHint, resolveSettings } from './settings.ts'

export interface CallOptions<Name extends RouteName = RouteName> {
  params?: Record<string, string>
  query?: Query
  body?: BodyOf<Name>
  content?: Content
  headers?: Record<string, string>
  idempotencyKey?: string
  signal?: AbortSignal
}

/** A token renewal that hangs must not block all calls. */
const RENEW_TIMEOUT_MS = 30_000

const TOKEN_ALONE =
  'A client that holds only a token cannot renew it. Give it a session token, which lasts longer (sandbox.sessionTokens.create), or the option token as a function that gets a new one.'

export type Query = Record<string, string | number | boolean | readonly string[] | undefined>

export class Client {
  readonly url: string
  readonly #keyHint: () => string | undefined
  readonly #credential: Credential
  readonly #transport: Transport
  readonly #socketPath: string | undefined
  /** Checks the owner of the listening program before a key from a file is sent to an address of this machine. */
  readonly #assertOwner: (() => void) | undefined
  #WebSocket: SocketConstructor | undefined
  readonly #retries: number

  constructor(options: ClientOptions = {}) {
    const { url, socketPath, apiKey, keyPath } = resolveSettings(options)
    this.url = url
    this.#socketPath = socketPath
    this.#assertOwner = keyPath && !socketPath ? ownerCheck(url, keyPath) : undefined
    this.#keyHint = () => keyHint(options)
    this.#credential = new Credential({
      apiKey,
      token: options.token,
      renew: (...args) => this.#renew(...args),
    })
    this.#transport = transportTo(url, { socketPath, fetch: options.fetch })
    this.#WebSocket = options.WebSocket
    this.#retries = options.retries ?? DEFAULT_RETRIES
  }

  /** A call whose answer is JSON, checked against the contract, or empty. */
  call<Name extends RouteName>(name: Name, options: CallOptions<Name> = {}): Promise<ResponseOf<Name>> {
    return this.#request(name, options, async (response) => {
      const text = await response.text()
      const shape: Shape | 'nothing' = ROUTES[name].response
      if (shape === 'nothing') return undefined as ResponseOf<Name>
      return checked<ResponseOf<Name>>(shape, parseJson(text), `The answer to ${name}`)
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
    return this.#request(name, options, async (answer) => {
      return relay(answer, (error) => this.#explain(error, options.signal))
    })
  }

  /** The same; undefined if the answer is 204. */
  streamOrNothing<Name extends RouteName>(
    name: Name,
    options: CallOptions<Name> = {},
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    return this.#request(name, options, async (answer) => {
      if (answer.status !== 204) return relay(answer, (error) => this.#explain(error, options.signal))
      await answer.text() // read to its end, so that the connection can be used again
      return undefined
    })
  }

  /** A call whose answer has one JSON value per line. */
  async *lines<Name extends RouteName>(name: Name, options: CallOptions<Name> = {}): AsyncGenerator<unknown> {
    for await (const line of readLines(await this.stream(name, options))) yield parseJson(line)
  }

  /** Must be awaited before `socket`: finds the platform's WebSocket and renews a token that is about to expire. */
  async ready(): Promise<void> {
    this.#WebSocket ??= await platformSocket(this.#socketPath)
    await this.#credential.fresh()
    this.#assertOwner?.()
  }

  socket(name: RouteName, options: Pick<CallOptions, 'params' | 'query'> = {}): Socket {
    const base = this.#socketPath === undefined ? this.url : 'http://localhost'
    return openSocket(this.#WebSocket!, base + pathOf(name, options), this.#credential.latest)
  }

  /** A refused WebSocket does not say why; the same request over HTTP does. True: the token had expired and was renewed. */
  async renewedBy(call: () => Promise<unknown>): Promise<boolean> {
    const before = this.#credential.renewals
    await call()
    return this.#credential.renewals !== before
  }

  /** The token that this client sends; undefined if it sends a key. */
  async token(signal?: AbortSignal): Promise<SandboxToken | undefined> {
    if (!this.#credential.isToken) return undefined
    const token = await this.#credential.fresh(signal)
    const claims = token === undefined ? undefined : claimsOf(token)
    return claims && { token: token!, expiresAt: new Date(claims.expiresAtMs).toISOString() }
  }

  #request<Name extends RouteName, T>(
    name: Name,
    options: CallOptions<Name>,
    read: (answer: Answer) => Promise<T>,
  ): Promise<T> {
    const { signal, idempotencyKey } = options
    const isSafe = ROUTES[name].method === 'GET' || idempotencyKey !== undefined
    const attempt = async (): Promise<T> => {
      try {
        const response = await this.#sendFresh(name, options)
        if (!response.ok) throw await this.#errorOf(response)
        return await read(response)
      } catch (error) {
        throw this.#explain(error, signal)
      }
    }
    return withRetries(attempt, { retries: isSafe ? this.#retries : 0, signal })
  }

  /** A request refused because of its token had no effect, so it can be sent again with a new token. */
  async #sendFresh<Name extends RouteName>(name: Name, options: CallOptions<Name>): Promise<Answer> {
    const { signal, content } = options
    if (isOpen(name)) return this.#send(name, options, undefined)
    const shown = await this.#credential.fresh(signal)
    const response = await this.#send(name, options, shown)
    if (response.status !== 401 || !(await this.#credential.replace(shown, signal))) return response
    if (content !== undefined && !isReplayable(content)) return response
    await response.body?.cancel()
    return this.#send(name, options, this.#credential.latest)
  }

  async #send<Name extends RouteName>(
    name: Name,
    options: CallOptions<Name>,
    bearer: string | undefined,
  ): Promise<Answer> {
    options.signal?.throwIfAborted()
    const headers: Record<string, string> = { ...options.headers }
    if (bearer !== undefined) {
      this.#assertOwner?.()
      headers.Authorization = `Bearer ${bearer}`
    }
    if (options.idempotencyKey !== undefined) headers['Idempotency-Key'] = options.idempotencyKey
    const ask: Ask = { method: ROUTES[name].method, headers }
    if (options.signal) ask.signal = options.signal
    if (options.content !== undefined) {
      headers['Content-Type'] = 'application/octet-stream'
      Object.assign(ask, await toBody(options.content))
    } else if (options.body !== undefined) {
      headers['Content-Type'] = 'application/json'
      ask.body = JSON.stringify(options.body)
    }
    return this.#transport(pathOf(name, options), ask)
  }

  /** A new token with the same lifetime as the old one. */
  async #renew({ sandboxId, issuedAtMs, expiresAtMs }: Claims, apiKey: string): Promise<string> {
    const expiresIn = Math.min(Math.max(expiresAtMs - issuedAtMs, 1000), LIMITS.tokenMs)
    const options = {
      params: { id: sandboxId },
      body: { expiresIn },
      signal: AbortSignal.timeout(RENEW_TIMEOUT_MS),
    }
    const response = await this.#send('createToken', options, apiKey)
    if (!response.ok) throw await errorOf(response)
    const body = parseJson(await response.text())
    return checked<SandboxToken>(sandboxTokenShape, body, 'The new token').token
  }

  /** The server does not know what the client was given; hints about that are added here. */
  async #errorOf(response: Answer): Promise<Error> {
    const error = await errorOf(response)
    if (hasCode(error, 'token_expired') && this.#credential.isToken && !this.#credential.canRenew)
      return new IsletError('token_expired', error.message, { hint: TOKEN_ALONE })
    const isPlain = hasCode(error, 'unauthorized') && error.message === new IsletError('unauthorized').message
    const hint = isPlain ? this.#keyHint() : undefined
    return hint === undefined ? error : new IsletError('unauthorized', error.message, { hint })
  }

  /** Every error of a call is an AbortError, an error of the server, or `connection_failed`. */
  #explain(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return abortError(signal)
    if (!(error instanceof TypeError)) return error
    const cause = (error as { cause?: { code?: string; message?: string } }).cause
    const reason = cause?.code ?? cause?.message ?? error.message
    return new ClientError('connection_failed', `No answer from ${this.url} (${reason}).`, { cause: error })
  }
}

/** Open routes need no credential, so none is sent. */
function isOpen(name: RouteName): boolean {
  return 'open' in ROUTES[name]
}

function pathOf(name: RouteName, { params, query }: Pick<CallOptions, 'params' | 'query'>): string {
  const path = routePath(name, params)
  if (query === undefined) return path
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) search.append(key, String(item))
    }
  }
  return search.size > 0 ? `${path}?${search}` : path
}

async function errorOf(response: Answer): Promise<Error> {
  const body = parseJson(await response.text(), null) as { error?: WireError } | null
  if (typeof body?.error?.code === 'string') return errorFromBody(body.error)
  const code = response.status >= 502 && response.status <= 504 ? 'connection_failed' : 'bad_response'
  return new ClientError(
    code,
    `The answer ${response.status} ${response.statusText} is not from an Islet server.`,
  )
}

function parseJson(text: string, otherwise?: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (otherwise !== undefined) return otherwise
    throw new ClientError('bad_response', 'The answer is not valid JSON.', { cause })
  }
}
