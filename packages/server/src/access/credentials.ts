// Who a key or token belongs to: the same answer for the API and for previews.
import { IsletError } from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { AdminKey } from '../key.ts'
import type { Tokens } from '../tokens.ts'
import type { Session, Sessions } from './sessions.ts'

export type Holder =
  | { kind: 'admin' }
  /** Without a session the token is a JWT, which cannot be revoked. */
  | { kind: 'sandbox'; sandboxId: string; expiresAt: number; session: Session | undefined }

interface CredentialsOptions {
  key: Pick<AdminKey, 'keyMatches'>
  tokens: Tokens
  sessions: Sessions
  sandboxes: Pick<Sandboxes, 'isThere'>
}

export class Credentials {
  readonly #options: CredentialsOptions

  constructor(options: CredentialsOptions) {
    this.#options = options
  }

  /** Throws `unauthorized` or `token_expired`. A token ends with its sandbox; then only the API key can read the records. */
  async holderOf(candidate: string): Promise<Holder> {
    const { key, sessions, tokens, sandboxes } = this.#options
    if (key.keyMatches(candidate)) return { kind: 'admin' }
    const session = sessions.find(candidate)
    const { sandboxId, expiresAt } = session ?? (await tokens.verify(candidate))
    if (!sandboxes.isThere(sandboxId)) throw new IsletError('unauthorized')
    return { kind: 'sandbox', sandboxId, expiresAt, session }
  }

  /** Whether it is a key or token of this server, expired or not. */
  isOurs(text: string): boolean {
    const { key, sessions, tokens } = this.#options
    return key.keyMatches(text) || tokens.isOurs(text) || sessions.isOurs(text)
  }

  /** Calls `end` when the holder's token is revoked or expires, unless the returned function was called before. */
  watch(holder: Holder | { kind: 'inside' }, end: (why: IsletError) => void): () => void {
    const session = holder.kind === 'sandbox' ? holder.session : undefined
    return session ? this.#options.sessions.watch(session, end) : () => {}
  }
}
