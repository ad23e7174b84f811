// Short-lived tokens for one sandbox each, and grants for one file or stream: JWTs signed with a key that never leaves this server.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { join } from 'node:path'
import { DEFAULTS, IsletError, isId, type OutputChannel, type SandboxToken } from '@islet/contract'
import { errors, type JWTPayload, jwtVerify } from 'jose'
import { createSecretOnce } from './key.ts'
import type { Log } from './log.ts'

/** What signed URLs allow, without a key. `tokenId`: the session token that made the URL, which ends with that token. */
export interface Grants {
  file: { sandboxId: string; tokenId?: string | undefined; path: string; method: 'GET' | 'PUT' }
  output: { sandboxId: string; tokenId?: string | undefined; processId: string; channel: OutputChannel }
  events: { sandboxId: string; tokenId?: string | undefined }
}

/** A token of one audience is never accepted for another. */
type Audience = 'sandbox' | 'inside' | keyof Grants

const ALGORITHM = 'EdDSA'
const ISSUER = 'islet'
const HEADER = toBase64Url({ alg: ALGORITHM, typ: 'JWT' })
/** Longer tokens are refused without parsing. */
const MAX_LENGTH = 16 * 1024
/** The number of valid tokens to remember, so that a token is not verified with every request. */
const REMEMBERED = 10_000

export class Tokens {
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject
  readonly #valid = new Map<string, { sandboxId: string; expiresAt: number }>()

  static async open(dataDir: string, options: { log?: Pick<Log, 'warn'> } = {}): Promise<Tokens> {
    const path = join(dataDir, 'token-key')
    return new Tokens(readPrivateKey(createSecretOnce(path, newPrivateKey, options), path))
  }

  constructor(privateKey: KeyObject) {
    this.#privateKey = privateKey
    this.#publicKey = createPublicKey(privateKey)
  }

  issue(sandboxId: string, options: { lifetimeMs?: number } = {}): SandboxToken {
    const expiresAt = Date.now() + (options.lifetimeMs ?? DEFAULTS.tokenMs)
    const token = this.#sign('sandbox', { sub: sandboxId }, expiresAt)
    this.#remember(token, { sandboxId, expiresAt: toSeconds(expiresAt) * 1000 })
    return { token, expiresAt: toIso(expiresAt) }
  }

  /** For programs inside the sandbox: lasts as long as the sandbox, and works only on its own socket. */
  issueInside(sandboxId: string): string {
    return this.#sign('inside', { sub: sandboxId })
  }

  /** Throws `unauthorized` or `token_expired`. */
  async verify(token: string): Promise<{ sandboxId: string; expiresAt: number }> {
    const known = this.#valid.get(token)
    if (known && known.expiresAt > Date.now()) return known
    const { sub, exp } = await this.#check(token, 'sandbox')
    const found = { sandboxId: sub, expiresAt: (exp ?? 0) * 1000 }
    this.#remember(token, found)
    return found
  }

  async verifyInside(token: string): Promise<{ sandboxId: string }> {
    return { sandboxId: (await this.#check(token, 'inside')).sub }
  }

  /** Whether this server signed the token, for any audience, expired or not. */
  isOurs(token: string): boolean {
    const [header, payload, signature] = token.length > MAX_LENGTH ? [] : token.split('.')
    if (header !== HEADER || signature === undefined) return false
    const signed = Buffer.from(`${header}.${payload}`)
    return verify(null, signed, this.#publicKey, Buffer.from(signature, 'base64url'))
  }

  issueGrant<Kind extends keyof Grants>(
    kind: Kind,
    { sandboxId, tokenId, ...claims }: Grants[Kind],
    { lifetimeMs }: { lifetimeMs: number },
  ): { grant: string; expiresAt: string } {
    const expiresAt = Date.now() + lifetimeMs
    const owner = { sub: sandboxId, ...(tokenId !== undefined && { tok: tokenId }) }
    const grant = this.#sign(kind, { ...owner, ...claims }, expiresAt)
    return { grant, expiresAt: toIso(expiresAt) }
  }

  /** What was signed for this kind is in the form of this kind. */
  async verifyGrant<Kind extends keyof Grants>(kind: Kind, grant: string): Promise<Grants[Kind]> {
    const { sub, tok, iss: _, aud: __, iat: ___, exp: ____, ...claims } = await this.#check(grant, kind)
    return { sandboxId: sub, tokenId: tok, ...claims } as Grants[Kind]
  }

  /** Synchronous: takes a tenth of the time of signing in another thread. */
  #sign(audience: Audience, claims: JWTPayload, expiresAt?: number): string {
    const times = {
      iat: toSeconds(Date.now()),
      ...(expiresAt !== undefined && { exp: toSeconds(expiresAt) }),
    }
    const payload = toBase64Url({ ...claims, iss: ISSUER, aud: audience, ...times })
    const signed = `${HEADER}.${payload}`
    return `${signed}.${sign(null, Buffer.from(signed), this.#privateKey).toString('base64url')}`
  }

  async #check(token: string, audience: Audience): Promise<JWTPayload & { sub: string }> {
    if (token.length > MAX_LENGTH) throw new IsletError('unauthorized')
    try {
      const { payload } = await jwtVerify(token, this.#publicKey, {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience,
        requiredClaims: audience === 'inside' ? ['sub'] : ['sub', 'exp'],
      })
      const { sub } = payload
      if (sub !== undefined && isId('sandbox', sub)) return { ...payload, sub }
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw new IsletError('token_expired')
      if (!(error instanceof errors.JOSEError)) throw error
    }
    throw new IsletError('unauthorized')
  }

  #remember(token: string, found: { sandboxId: string; expiresAt: number }): void {
    if (this.#valid.size >= REMEMBERED) this.#valid.delete(this.#valid.keys().next().value!)
    this.#valid.set(token, found)
  }
}

function toBase64Url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function toSeconds(ms: number): number {
  return Math.floor(ms / 1000)
}

function newPrivateKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

function readPrivateKey(pem: string, path: string): KeyObject {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // The error below does not quote the file.
  }
  throw new Error(
    `The key in ${path} is not usable. Remove it for a new one: tokens of the old one then end.`,
  )
}

/** Whole seconds, as in the token. */
function toIso(expiresAt: number): string {
  return new Date(Math.floor(expiresAt / 1000) * 1000).toISOString()
}
