// The credential of a client: the API key, or the token of one sandbox. A token is renewed before it expires, if the client has the key or
// a function that fetches tokens.
import { abortError } from '../errors.ts'

/** A token, or a function that fetches one; it is called again before the token expires. */
export type TokenSource = string | (() => string | Promise<string>)

export interface CredentialOptions {
  apiKey?: string | undefined
  token?: TokenSource | undefined
  /** Asks the server for a new token for the same sandbox, which needs the key. */
  renew(claims: Claims, apiKey: string): Promise<string>
}

/** The content of a token. The client does not check the signature; it only needs to know when to renew. */
export interface Claims {
  sandboxId: string
  issuedAtMs: number
  expiresAtMs: number
}

/** A token is renewed when less than this part of its lifetime is left, or less than this time. */
const RENEW_PART = 0.2
const RENEW_MS = 5 * 60_000

export class Credential {
  /** The key or token to send. */
  latest: string | undefined
  /** How many times the token was replaced. */
  renewals = 0
  readonly #options: CredentialOptions
  #renewing: Promise<void> | undefined

  constructor(options: CredentialOptions) {
    this.#options = options
    this.latest =
      typeof options.token === 'string' ? options.token : options.token ? undefined : options.apiKey
  }

  get isToken(): boolean {
    return this.#options.token !== undefined
  }

  /** A token alone cannot be renewed. */
  get canRenew(): boolean {
    return this.#options.apiKey !== undefined || typeof this.#options.token === 'function'
  }

  /** The key or token to send now. If a renewal fails the old token is used, and the call says what is wrong with it. */
  async fresh(signal?: AbortSignal): Promise<string | undefined> {
    if (!this.isToken) return this.latest
    if (this.latest === undefined) await unlessAborted(this.#renew(), signal)
    else if (this.canRenew && isDue(this.latest)) await this.#tryRenew(signal)
    return this.latest
  }

  /** After the server refused `shown`: whether there is another token to send. */
  async replace(shown: string | undefined, signal?: AbortSignal): Promise<boolean> {
    if (!this.isToken || !this.canRenew) return false
    if (this.latest !== shown) return true
    await this.#tryRenew(signal)
    return this.latest !== shown
  }

  #tryRenew(signal?: AbortSignal): Promise<void> {
    const renewed = this.#renew().catch(() => {})
    return unlessAborted(renewed, signal)
  }

  /** One renewal for all callers that wait. */
  #renew(): Promise<void> {
    this.#renewing ??= this.#replacement()
      .then((token) => {
        if (token !== this.latest) this.renewals++
        this.latest = token
      })
      .finally(() => {
        this.#renewing = undefined
      })
    return this.#renewing
  }

  async #replacement(): Promise<string> {
    const { apiKey, token, renew } = this.#options
    if (typeof token === 'function') return token()
    const claims = claimsOf(this.latest!)
    return claims && apiKey !== undefined ? renew(claims, apiKey) : this.latest!
  }
}

/** Whether a token is about to expire. False for a token that cannot be read: the server will refuse it. */
export function isDue(token: string): boolean {
  const claims = claimsOf(token)
  if (!claims) return false
  const lifeMs = claims.expiresAtMs - claims.issuedAtMs
  return claims.expiresAtMs - Date.now() < Math.min(lifeMs * RENEW_PART, RENEW_MS)
}

export function claimsOf(token: string): Claims | undefined {
  try {
    const payload = token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/')
    const { sub, iat, exp } = JSON.parse(atob(payload)) as Record<string, unknown>
    if (typeof sub !== 'string' || typeof iat !== 'number' || typeof exp !== 'number') return undefined
    return { sandboxId: sub, issuedAtMs: iat * 1000, expiresAtMs: exp * 1000 }
  } catch {
    return undefined
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const leave = () => reject(abortError(signal))
    if (signal.aborted) return leave()
    signal.addEventListener('abort', leave, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}
