// Session tokens: each gives access to one sandbox until it expires, is revoked, or the sandbox ends. What a token has open then is closed.
import {
  type CreateSessionTokenParsed,
  DEFAULTS,
  IsletError,
  LIMITS,
  newId,
  type SessionToken,
  type SessionTokenInfo,
} from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import { type SessionTokenRecord, SessionTokenTable } from '../db/session-tokens.ts'
import type { Log } from '../log.ts'
import { hashOf, newSecret } from './secret.ts'

const PREFIX = 'st_'
/** The number of verified tokens to remember, so that a request needs no database read. */
const REMEMBERED = 10_000
/** The time of the last use is saved at most this often. */
const SAVE_MS = 60_000
/** The wall clock may be changed, so the expiry of tokens with something open is checked this often. */
const LOOK_MS = 60_000
/** Expired tokens are listed for this long. */
const KEEP_EXPIRED_MS = 7 * 24 * 3_600_000
const SWEEP_MS = 3_600_000

/** A token that was verified. */
export interface Session extends Pick<SessionTokenRecord, 'id' | 'sandboxId' | 'hash' | 'expiresAt'> {
  lastUsedAt: number | null
  /** The last use that was saved. */
  savedAt: number
}

/** Ends a request or a connection; `why` says what happened to its token. */
type End = (why: IsletError) => void

interface SessionsOptions {
  db: Db
  sandboxes: Pick<Sandboxes, 'record' | 'observe'>
  log: Log
}

export class Sessions {
  readonly #options: SessionsOptions
  readonly #table: SessionTokenTable
  /** By hash. */
  readonly #known = new Map<string, Session>()
  /** By id: what each token has open. */
  readonly #open = new Map<string, { ends: Set<End>; timer: NodeJS.Timeout | undefined }>()
  readonly #sweeping: NodeJS.Timeout

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#table = new SessionTokenTable(options.db)
    this.#sweep()
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS).unref()
    options.sandboxes.observe({
      began: () => {},
      gone: async (sandboxId, { removed }) => {
        if (removed) this.#removeAll(sandboxId)
      },
    })
  }

  /** Throws `invalid_state` if nothing is left to reach in the sandbox. */
  create(sandboxId: string, { description, expiresIn }: CreateSessionTokenParsed): SessionToken {
    assertReachable(this.#options.sandboxes, sandboxId)
    this.#assertRoom(sandboxId)
    const token = newSecret(PREFIX)
    const createdAt = Date.now()
    const record = {
      id: newId('sessionToken'),
      sandboxId,
      hash: hashOf(token),
      description: description ?? null,
      createdAt,
      expiresAt: createdAt + (expiresIn ?? DEFAULTS.sessionTokenMs),
      lastUsedAt: null,
    }
    this.#table.insert(record)
    const { lastUsedAt: _, ...info } = toInfo(record)
    return { ...info, token }
  }

  /** Newest first, expired ones too. */
  list(sandboxId: string): SessionTokenInfo[] {
    this.#options.sandboxes.record(sandboxId)
    return this.#table.list(sandboxId).map((record) => this.#infoOf(record))
  }

  get(sandboxId: string, id: string): SessionTokenInfo {
    this.#options.sandboxes.record(sandboxId)
    const record = this.#table.get(sandboxId, id)
    if (!record) throw new IsletError('token_not_found')
    return this.#infoOf(record)
  }

  /** Does nothing if there is no such token. */
  revoke(sandboxId: string, id: string): void {
    this.#options.sandboxes.record(sandboxId)
    const record = this.#table.get(sandboxId, id)
    if (!record) return
    this.#table.remove(id)
    this.#known.delete(record.hash)
    this.#end(id, new IsletError('unauthorized', 'The session token was revoked.'))
  }

  /** Undefined if the text is no session token of this server. Throws `token_expired`. */
  find(text: string): Session | undefined {
    const session = this.#lookUp(text)
    if (session === undefined) return undefined
    if (session.expiresAt <= Date.now()) throw expired()
    this.#touch(session)
    return session
  }

  /** Whether the text is a session token of this server, expired or not. */
  isOurs(text: string): boolean {
    return this.#lookUp(text) !== undefined
  }

  /** As `watch`, for what a token made. Throws unless the token can be used. */
  watchById(sandboxId: string, id: string, end: End): () => void {
    const record = this.#table.get(sandboxId, id)
    if (!record) throw new IsletError('unauthorized')
    if (record.expiresAt <= Date.now()) throw expired()
    return this.watch({ ...record, savedAt: 0 }, end)
  }

  /** Calls `end` when the token is revoked or expires, unless the returned function was called before. */
  watch(session: Session, end: End): () => void {
    const { id, hash } = session
    const isRevoked = !this.#known.has(hash) && !this.#table.byHash(hash)
    if (isRevoked) {
      end(new IsletError('unauthorized'))
      return () => {}
    }
    let open = this.#open.get(id)
    if (!open) {
      open = { ends: new Set(), timer: undefined }
      this.#open.set(id, open)
    }
    const { ends } = open
    ends.add(end)
    if (ends.size === 1) this.#arm(session)
    return () => {
      ends.delete(end)
      if (ends.size > 0 || this.#open.get(id)?.ends !== ends) return
      clearTimeout(this.#open.get(id)!.timer)
      this.#open.delete(id)
    }
  }

  /** Saves the times of the last uses. */
  close(): void {
    clearInterval(this.#sweeping)
    for (const { timer } of this.#open.values()) clearTimeout(timer)
    for (const session of this.#known.values()) this.#save(session)
  }

  #lookUp(text: string): Session | undefined {
    if (!text.startsWith(PREFIX)) return undefined
    const hash = hashOf(text)
    const known = this.#known.get(hash)
    if (known) return known
    const record = this.#table.byHash(hash)
    if (!record) return undefined
    const { id, sandboxId, expiresAt, lastUsedAt } = record
    const session = { id, sandboxId, hash, expiresAt, lastUsedAt, savedAt: lastUsedAt ?? 0 }
    if (this.#known.size >= REMEMBERED) this.#forgetOldest()
    this.#known.set(hash, session)
    return session
  }

  #forgetOldest(): void {
    const [oldest] = this.#known.values()
    if (!oldest) return
    this.#save(oldest)
    this.#known.delete(oldest.hash)
  }

  #touch(session: Session): void {
    session.lastUsedAt = Date.now()
    if (session.lastUsedAt - session.savedAt >= SAVE_MS) this.#save(session)
  }

  /** A use does not fail when it cannot be saved, on a full disk. */
  #save(session: Session): void {
    const { id, lastUsedAt, savedAt } = session
    if (lastUsedAt === null || lastUsedAt === savedAt) return
    session.savedAt = lastUsedAt
    this.#options.db.later(() => this.#table.used(id, lastUsedAt)).catch(() => {})
  }

  #arm(session: Session): void {
    const open = this.#open.get(session.id)
    if (!open) return
    const left = session.expiresAt - Date.now()
    if (left > 0) open.timer = setTimeout(() => this.#arm(session), Math.min(left, LOOK_MS)).unref()
    else this.#end(session.id, expired())
  }

  #end(id: string, why: IsletError): void {
    const open = this.#open.get(id)
    if (!open) return
    this.#open.delete(id)
    clearTimeout(open.timer)
    for (const end of open.ends) end(why)
  }

  #assertRoom(sandboxId: string): void {
    if (this.#table.count(sandboxId) < LIMITS.sessionTokens) return
    this.#table.removeExpired(sandboxId, Date.now())
    if (this.#table.count(sandboxId) < LIMITS.sessionTokens) return
    throw new IsletError('limit_exceeded', `A sandbox has at most ${LIMITS.sessionTokens} session tokens.`, {
      hint: 'Revoke some: islet token rm SANDBOX TOKEN.',
    })
  }

  /** Its requests that still run, like the one that removed the sandbox, get their answer. */
  #removeAll(sandboxId: string): void {
    for (const { hash } of this.#table.list(sandboxId)) this.#known.delete(hash)
    this.#table.removeAll(sandboxId)
  }

  #sweep(): void {
    try {
      this.#table.sweep(Date.now() - KEEP_EXPIRED_MS)
    } catch (error) {
      this.#options.log.warn({ error }, 'expired session tokens are not removed; this is retried')
    }
  }

  #infoOf(record: SessionTokenRecord): SessionTokenInfo {
    const lastUsedAt = this.#known.get(record.hash)?.lastUsedAt ?? record.lastUsedAt
    return toInfo({ ...record, lastUsedAt })
  }
}

/** Throws if the sandbox has ended. */
export function assertReachable(sandboxes: Pick<Sandboxes, 'record'>, sandboxId: string): void {
  const { status } = sandboxes.record(sandboxId)
  if (status !== 'stopped') return
  throw new IsletError('invalid_state', `Sandbox ${sandboxId} is stopped: there is nothing to reach.`)
}

function toInfo({
  hash: _,
  createdAt,
  expiresAt,
  lastUsedAt,
  ...record
}: SessionTokenRecord): SessionTokenInfo {
  return {
    ...record,
    createdAt: new Date(createdAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    lastUsedAt: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  }
}

const expired = (): IsletError => new IsletError('token_expired', 'The session token has expired.')
