// Session tokens and magic links: the same as `sandbox.sessionTokens` and `sandbox.magicLinks` of the SDK, with seconds.
import { IsletError, type Names, refuseUnknown, type Sandbox, type SessionToken } from '@islet/sdk'

export interface CreateSessionTokenOptions {
  description?: string
  /** Seconds. Default: 604800, 7 days. */
  expiresIn?: number
}

export interface SessionTokenInfo {
  id: string
  description?: string
  /** ISO 8601. */
  createdAt: string
  expiresAt: string
}

export interface CreateMagicLinkOptions {
  /** A path of the server. Default: /play/. */
  redirectUrl?: string
}

export interface MagicLinkInfo {
  url: string
  expiresAt: string
  redirectUrl: string
}

const TOKEN: Names<CreateSessionTokenOptions> = { description: 1, expiresIn: 1 }

export class SessionTokens {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  /** The only answer with the token itself. */
  async create(options: CreateSessionTokenOptions = {}): Promise<SessionTokenInfo & { token: string }> {
    refuseUnknown('sandbox.sessionTokens.create', options, TOKEN)
    const { description, expiresIn } = options
    if (expiresIn !== undefined && !Number.isFinite(expiresIn))
      throw new IsletError('bad_request', 'expiresIn is a number of seconds.')
    const made = await this.#native.sessionTokens.create({
      description,
      expiresIn: expiresIn === undefined ? undefined : Math.round(expiresIn * 1000),
    })
    return { ...toInfo(made), token: made.token }
  }

  /** With `lastUsedAt`, if the token was used. */
  async list(): Promise<(SessionTokenInfo & { lastUsedAt?: string })[]> {
    return (await this.#native.sessionTokens.list()).map((token) => ({
      ...toInfo(token),
      ...(token.lastUsedAt && { lastUsedAt: token.lastUsedAt }),
    }))
  }

  async retrieve(id: string): Promise<SessionTokenInfo> {
    return toInfo(await this.#native.sessionTokens.retrieve(id))
  }

  /** Does nothing if there is no such token. */
  async revoke(id: string): Promise<void> {
    await this.#native.sessionTokens.revoke(id)
  }
}

export class MagicLinks {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  /** Valid once, for five minutes. */
  async create(options: CreateMagicLinkOptions = {}): Promise<MagicLinkInfo> {
    refuseUnknown('sandbox.magicLinks.create', options, { redirectUrl: 1 })
    const { url, expiresAt, redirectUrl } = await this.#native.magicLinks.create(options)
    return { url, expiresAt, redirectUrl }
  }
}

function toInfo({
  id,
  description,
  createdAt,
  expiresAt,
}: Pick<SessionToken, 'id' | 'description' | 'createdAt' | 'expiresAt'>): SessionTokenInfo {
  return { id, ...(description && { description }), createdAt, expiresAt }
}
