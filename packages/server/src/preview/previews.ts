// Previews: the URLs by which ports of sandboxes are reached from outside.
import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type CreatePreviewParsed, IsletError, LIMITS, type Preview } from '@islet/contract'
import type { Credentials } from '../access/credentials.ts'
import type { Config } from '../config.ts'
import type { SetPort } from '../control/creation.ts'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import { type PreviewRecord, PreviewTable } from '../db/previews.ts'
import type { Certificate } from '../listen/certificate.ts'
import type { Connections } from '../listen/connections.ts'
import type { Log } from '../log.ts'
import { type AddressConfig, Addresses } from './address.ts'
import { PreviewAuth } from './auth.ts'
import { Listeners } from './listeners.ts'
import { type Handler, Visitors } from './visitors.ts'
import { Visits } from './visits.ts'

interface PreviewsOptions {
  db: Db
  sandboxes: Sandboxes
  credentials: Credentials
  log: Log
  connections: Connections
  certificate: Certificate | undefined
  config: AddressConfig & Pick<Config, 'previewPorts'>
}

export class Previews {
  readonly #options: PreviewsOptions
  readonly #table: PreviewTable
  readonly #addresses: Addresses
  readonly #listeners: Listeners
  readonly #visits = new Visits()
  readonly #visitors: Visitors
  readonly #records = new Map<string, PreviewRecord>()
  readonly #domains = new Map<string, string>()
  /** Hashes of all tokens; undefined after a change, until they are needed. */
  #tokenHashes: Set<string> | undefined
  /** Changes run one after the other: a port that is being opened is not recorded yet. */
  #changes: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(options: PreviewsOptions) {
    const { db, sandboxes, config } = options
    this.#options = options
    this.#table = new PreviewTable(db)
    this.#addresses = new Addresses(config)
    this.#listeners = new Listeners({ ...options, host: config.host, range: config.previewPorts })
    this.#visitors = new Visitors({
      ...options,
      auth: new PreviewAuth({ ...options, isPreviewToken: (hash) => this.#isToken(hash) }),
      visits: this.#visits,
      addresses: this.#addresses,
      scheme: this.#addresses.scheme,
      ofPort: (sandboxId, port) => this.#records.get(keyOf(sandboxId, port)),
      ofDomain: (domain) => this.#records.get(this.#domains.get(domain) ?? ''),
      isClosing: () => this.#closed,
    })
    for (const record of this.#table.all()) {
      const { status } = sandboxes.record(record.sandboxId)
      // A crash left the preview of a sandbox that was half made or half removed.
      if (status === 'creating' || status === 'stopped') this.#table.remove(record.sandboxId, record.port)
      else this.#keep(record)
    }
    sandboxes.observe({
      began: () => {},
      gone: async (sandboxId, { removed }) => {
        if (removed) await this.#change(() => this.#removeAll(sandboxId))
      },
    })
  }

  /** Opens the recorded previews, on their previous ports if those are free. */
  start(): Promise<void> {
    return this.#change(async () => {
      if (!this.#addresses.byPort) return
      await Promise.all([...this.#records.values()].map((record) => this.#reopen(record)))
    })
  }

  /** Sets the API's port, which preview domains lead to. */
  servedAt(mainPort: number): void {
    this.#addresses.mainPort = mainPort
  }

  /** Makes no more previews; requests under way have `timeoutMs` to end. */
  async close(options: { timeoutMs: number }): Promise<void> {
    this.#closed = true
    await this.#changes
    this.#listeners.stop()
    await this.#visits.drain(options.timeoutMs)
    await this.#listeners.closeAll()
  }

  /** The handler of a request on the main port that is for a preview; undefined for other requests. */
  handlerOf(incoming: IncomingMessage): Handler | undefined {
    return this.#visitors.atMainPort(incoming)
  }

  /** Creates the preview of a port, or changes it. */
  async create(
    sandboxId: string,
    input: CreatePreviewParsed,
    options: { via?: string } = {},
  ): Promise<Preview> {
    return this.#change(async () => {
      if (this.#closed) throw new IsletError('draining')
      this.#assertUsable(sandboxId)
      const old = this.#records.get(keyOf(sandboxId, input.port))
      // Saving again also retries a preview that could not be opened at start.
      if (old && input.keep) return this.#view(await this.#save(old, old), options.via)
      if (!old) this.#assertFew(sandboxId)
      if (input.domain) this.#assertFree(input.domain, old)
      const token = input.authConfig && (input.authConfig.token ?? randomBytes(32).toString('base64url'))
      const auth = token === undefined ? null : ({ type: 'token', hash: hash('sha256', token) } as const)
      const wanted = {
        sandboxId,
        port: input.port,
        domain: input.domain ?? null,
        auth,
        listenPort: old?.listenPort ?? null,
        createdAt: old?.createdAt ?? Date.now(),
      }
      const note = () => this.#options.sandboxes.notePreview(sandboxId, input.port, wanted)
      const record = await this.#save(old, wanted, note)
      return { ...this.#view(record, options.via), ...(token !== undefined && { token }) }
    })
  }

  list(sandboxId: string, options: { via?: string } = {}): Preview[] {
    this.#options.sandboxes.record(sandboxId)
    return this.#of(sandboxId)
      .sort((a, b) => a.port - b.port)
      .map((record) => this.#view(record, options.via))
  }

  delete(sandboxId: string, port: number): Promise<void> {
    this.#options.sandboxes.record(sandboxId)
    return this.#change(() => {
      const record = this.#records.get(keyOf(sandboxId, port))
      if (!record) throw new IsletError('preview_not_found', `Port ${port} of ${sandboxId} has no preview.`)
      this.#options.db.transaction(() => {
        this.#table.remove(sandboxId, port)
        this.#options.sandboxes.notePreview(sandboxId, port, undefined)
      })
      return this.#forget(record)
    })
  }

  /** Creates the preview of a port unless there is one. */
  setPort(...[sandboxId, { port, auth }, also]: Parameters<SetPort>): Promise<void> {
    return this.#change(async () => {
      if (this.#closed) throw new IsletError('draining')
      let replaced: PreviewRecord | undefined
      const write = () => {
        const from = also()
        if (from === null || from === port) return
        replaced = this.#records.get(keyOf(sandboxId, from))
        this.#table.remove(sandboxId, from)
      }
      if (port === null) this.#options.db.transaction(write)
      else {
        const old = this.#records.get(keyOf(sandboxId, port))
        if (!old) this.#assertFew(sandboxId)
        const rest = { domain: null, listenPort: null, createdAt: Date.now() }
        await this.#save(old, old ?? { sandboxId, port, auth: auth ?? null, ...rest }, write)
      }
      if (replaced) await this.#forget(replaced)
    })
  }

  /** The URL of a port; null if it has no preview. */
  urlAt(sandboxId: string, port: number | null, options: { via?: string } = {}): string | null {
    const record = port === null ? undefined : this.#records.get(keyOf(sandboxId, port))
    return record ? this.#addresses.urlOf(record, options.via) : null
  }

  /** Creates the preview of a port if there is none. */
  async urlOf(sandboxId: string, port: number): Promise<string> {
    return (await this.create(sandboxId, { port, keep: true })).url
  }

  #change<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.#changes.then(work)
    this.#changes = done.catch(() => {})
    return done
  }

  #of(sandboxId: string): PreviewRecord[] {
    return [...this.#records.values()].filter((record) => record.sandboxId === sandboxId)
  }

  #assertUsable(sandboxId: string): void {
    const { status } = this.#options.sandboxes.record(sandboxId)
    if (status !== 'stopped' && status !== 'failed') return
    throw new IsletError(
      'invalid_state',
      `Sandbox ${sandboxId} is ${status}: nothing listens there any more.`,
      {
        details: { status },
      },
    )
  }

  #assertFew(sandboxId: string): void {
    if (this.#of(sandboxId).length < LIMITS.previews) return
    throw new IsletError('limit_exceeded', `A sandbox has at most ${LIMITS.previews} previews.`)
  }

  #assertFree(domain: string, old: PreviewRecord | undefined): void {
    const owner = this.#domains.get(domain)
    const isTaken = owner !== undefined && owner !== (old && keyOf(old.sandboxId, old.port))
    if (!isTaken && this.#addresses.isFree(domain)) return
    throw new IsletError('conflict', `The domain ${domain} is taken.`, { hint: 'Choose another name.' })
  }

  /** `also` runs in the same transaction. */
  async #save(
    old: PreviewRecord | undefined,
    wanted: PreviewRecord,
    also: () => void = () => {},
  ): Promise<PreviewRecord> {
    const key = keyOf(wanted.sandboxId, wanted.port)
    const opened = this.#addresses.byPort && !this.#listeners.has(key)
    const record = opened ? { ...wanted, listenPort: await this.#listen(wanted) } : wanted
    try {
      this.#options.db.transaction(() => {
        also()
        this.#table.save(record)
      })
    } catch (error) {
      if (opened) await this.#listeners.close(key)
      throw error
    }
    if (old?.domain) this.#domains.delete(old.domain)
    this.#keep(record)
    // The token changed: visitors must authenticate again.
    if (old && old.auth?.hash !== record.auth?.hash) this.#visits.endAll(old)
    return record
  }

  #isToken(hash: string): boolean {
    this.#tokenHashes ??= new Set([...this.#records.values()].flatMap(({ auth }) => auth?.hash ?? []))
    return this.#tokenHashes.has(hash)
  }

  #keep(record: PreviewRecord): void {
    this.#tokenHashes = undefined
    const key = keyOf(record.sandboxId, record.port)
    this.#records.set(key, record)
    if (record.domain) this.#domains.set(record.domain, key)
  }

  async #reopen(record: PreviewRecord): Promise<void> {
    const key = keyOf(record.sandboxId, record.port)
    if (this.#listeners.has(key)) return
    try {
      const listenPort = await this.#listen(record)
      if (listenPort === record.listenPort) return
      this.#table.save({ ...record, listenPort })
      this.#keep({ ...record, listenPort })
    } catch (error) {
      // Its URL does not work until the preview is created again; the server continues.
      this.#options.log.warn({ error, sandbox: record.sandboxId, port: record.port }, 'preview not opened')
    }
  }

  #listen({ sandboxId, port, listenPort }: PreviewRecord): Promise<number> {
    return this.#listeners.open(keyOf(sandboxId, port), listenPort, this.#visitors.atPort(sandboxId, port))
  }

  async #removeAll(sandboxId: string): Promise<void> {
    for (const record of this.#of(sandboxId)) {
      this.#table.remove(sandboxId, record.port)
      await this.#forget(record)
    }
  }

  /** Its row is removed. */
  async #forget(record: PreviewRecord): Promise<void> {
    const key = keyOf(record.sandboxId, record.port)
    this.#records.delete(key)
    this.#tokenHashes = undefined
    if (record.domain) this.#domains.delete(record.domain)
    this.#visits.endAll(record)
    await this.#listeners.close(key)
  }

  #view(record: PreviewRecord, via: string | undefined): Preview {
    const { sandboxId, port, domain, auth } = record
    return {
      sandboxId,
      port,
      url: this.#addresses.urlOf(record, via),
      ...(domain && { domain }),
      ...(auth && { authConfig: { type: auth.type } }),
      createdAt: new Date(record.createdAt).toISOString(),
    }
  }
}

function keyOf(sandboxId: string, port: number): string {
  return `${sandboxId}:${port}`
}
