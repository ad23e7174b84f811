// What a client shows the server: the API key, or the token of one sandbox, which is renewed before it expires.
import { abortError } from '../errors.ts'

/** A token, or a function that gets one from wherever they are given out; it is asked again before that one expires. */
export type TokenSource = string | (() => string | Promise<string>)

export interface CredentialOptions {
  apiKey?: string | undefined
  token?: TokenSource | undefined
  /** Asks the server for another token like that one. */
  renew(claims: Claims, bearer: string): Promise<string>
}

/** What a token says about itself. The server checks the signature; here it only tells when to renew. */
export interface Claims {
  sandboxId: string
  issuedAtMs: number
  expiresAtMs: number
}

/** A token is renewed when this part of its life is left, or this long. */
const RENEW_PART = 0.2
const RENEW_MS = 5 * 60_000

export class Credential {
  /** What was last found good enough to show. */
  latest: string | undefined
  /** How often a token was replaced. */
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

  /** What to show now. A renewal that fails leaves the old token: the call that follows says what is wrong with it. */
  async fresh(signal?: AbortSignal): Promise<string | undefined> {
    if (!this.isToken) return this.latest
    if (this.latest === undefined) await unlessAborted(this.#renew(), signal)
    else if (isDue(this.latest) && this.#canRenew()) {
      await unlessAborted(
        this.#renew().catch(() => {}),
        signal,
      )
    }
    return this.latest
  }

  /** After the server refused `shown`: whether there is another one to show now. */
  async replace(shown: string | undefined, signal?: AbortSignal): Promise<boolean> {
    if (!this.isToken) return false
    if (this.latest !== shown) return true
    const { apiKey, token } = this.#options
    if (apiKey === undefined && typeof token === 'string') return false
    await unlessAborted(
      this.#renew().catch(() => {}),
      signal,
    )
    return this.latest !== shown
  }

  /** With nothing but the token itself, only while the server still takes it. */
  #canRenew(): boolean {
    const { apiKey, token } = this.#options
    return (
      apiKey !== undefined || typeof token !== 'string' || claimsOf(this.latest!)!.expiresAtMs > Date.now()
    )
  }

  /** Once for all who wait. */
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
    return claims ? renew(claims, apiKey ?? this.latest!) : this.latest!
  }
}

/** Whether a token is about to expire. One that cannot be read is left to the server. */
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
