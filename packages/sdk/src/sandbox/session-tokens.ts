import type { CreateSessionToken, SessionToken, SessionTokenInfo } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'

export interface SessionTokenOptions extends CreateSessionToken, Abortable {}

/** Tokens for this sandbox only that last for days and can be revoked. All methods need the API key. */
export class SessionTokens extends SandboxPart {
  /** `token` is shown only here; keep it. `expiresIn`: milliseconds or like '30d'; default 7 days, at most 365. */
  create(options: SessionTokenOptions = {}): Promise<SessionToken> {
    const { signal, ...body } = options
    return this.client.call('createSessionToken', { params: this.params, body, signal })
  }

  /** Newest first, expired ones too. */
  async list(options: Abortable = {}): Promise<SessionTokenInfo[]> {
    return (await this.client.call('listSessionTokens', { params: this.params, ...options })).tokens
  }

  /** Code `token_not_found` if there is none. */
  retrieve(id: string, options: Abortable = {}): Promise<SessionTokenInfo> {
    return this.client.call('getSessionToken', { params: { ...this.params, tokenId: id }, ...options })
  }

  /** At once: its calls and connections end too. Does nothing if the token is gone. */
  async revoke(id: string, options: Abortable = {}): Promise<void> {
    await this.client.call('revokeSessionToken', { params: { ...this.params, tokenId: id }, ...options })
  }
}

guard(SessionTokens.prototype, 'sandbox.sessionTokens', {
  create: [{ description: 1, expiresIn: 1, signal: 1 }],
  list: [ABORTABLE],
  retrieve: [null, ABORTABLE],
  revoke: [null, ABORTABLE],
})
