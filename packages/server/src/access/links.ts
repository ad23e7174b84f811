// Magic links: each signs one browser in to one sandbox, once and within minutes.
import { type CreateMagicLinkParsed, DEFAULTS, IsletError, LIMITS } from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import { type MagicLinkRecord, MagicLinkTable } from '../db/magic-links.ts'
import type { Log } from '../log.ts'
import { hashOf, newSecret } from './secret.ts'
import { assertReachable, type Sessions } from './sessions.ts'

const PAGE = '/play/'
/** So long a link is known to have been used or to have expired; afterwards there is no such link. */
const KEEP_MS = 24 * 3_600_000
const SWEEP_MS = 3_600_000

interface LinksOptions {
  db: Db
  sandboxes: Pick<Sandboxes, 'record' | 'isThere' | 'observe'>
  sessions: Sessions
  log: Log
}

export class MagicLinks {
  readonly #options: LinksOptions
  readonly #table: MagicLinkTable
  readonly #sweeping: NodeJS.Timeout

  constructor(options: LinksOptions) {
    this.#options = options
    this.#table = new MagicLinkTable(options.db)
    this.#sweep()
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS).unref()
    options.sandboxes.observe({
      began: () => {},
      gone: async (sandboxId, { removed }) => {
        if (removed) this.#table.removeAll(sandboxId)
      },
    })
  }

  create(
    sandboxId: string,
    { redirectUrl = PAGE }: CreateMagicLinkParsed,
  ): { secret: string; expiresAt: string; redirectUrl: string } {
    assertReachable(this.#options.sandboxes, sandboxId)
    const now = Date.now()
    if (this.#table.countUsable(sandboxId, now) >= LIMITS.magicLinks)
      throw new IsletError(
        'limit_exceeded',
        `A sandbox has at most ${LIMITS.magicLinks} unused magic links; each expires after five minutes.`,
      )
    const secret = newSecret()
    const expiresAt = now + DEFAULTS.magicLinkMs
    this.#table.insert({ hash: hashOf(secret), sandboxId, redirectUrl, expiresAt, usedAt: null })
    return { secret, expiresAt: new Date(expiresAt).toISOString(), redirectUrl }
  }

  /** Throws `link_not_found` or `link_used_up`. */
  find(secret: string): MagicLinkRecord {
    const link = this.#table.get(hashOf(secret))
    if (!link || !this.#options.sandboxes.isThere(link.sandboxId)) throw new IsletError('link_not_found')
    if (link.usedAt !== null) throw new IsletError('link_used_up', 'This magic link was used already.')
    if (link.expiresAt <= Date.now()) throw new IsletError('link_used_up', 'This magic link has expired.')
    return link
  }

  /** Marks the link as used and makes its session token, both or neither. */
  use(secret: string): { token: string; redirectUrl: string } {
    return this.#options.db.transaction(() => {
      const { hash, sandboxId, redirectUrl } = this.find(secret)
      if (!this.#table.use(hash, Date.now())) throw new IsletError('link_used_up')
      const { token } = this.#options.sessions.create(sandboxId, { description: 'magic link' })
      return { token, redirectUrl }
    })
  }

  close(): void {
    clearInterval(this.#sweeping)
  }

  #sweep(): void {
    try {
      this.#table.sweep(Date.now() - KEEP_MS)
    } catch (error) {
      this.#options.log.warn({ error }, 'old magic links are not removed; this is retried')
    }
  }
}
