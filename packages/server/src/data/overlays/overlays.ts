// Template directories, copied in the background, one at a time in each sandbox. An incomplete copy is repeated after a restart of
// the server or the sandbox.
import { posix } from 'node:path'
import { type CreateOverlayParsed, IsletError, LIMITS, newId, type OverlayInfo } from '@islet/contract'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import { type OverlayRecord, OverlayTable } from '../../db/overlays.ts'
import type { SandboxRecord } from '../../db/sandboxes.ts'
import type { Guest } from '../../guest/guest.ts'
import { Locks } from '../../lib/locks.ts'
import type { Log } from '../../log.ts'
import { copyTemplate, rulesOf } from './copy.ts'
import { checkEnds, clearGround, surveyGround } from './ground.ts'

/** How often a copy is tried when its connection breaks. */
const ATTEMPTS = 3

interface OverlaysOptions {
  db: Db
  sandboxes: Sandboxes
  log: Log
}

interface Job {
  record: OverlayRecord
  abort: AbortController
  done: Promise<void>
}

export class Overlays {
  readonly #options: OverlaysOptions
  readonly #table: OverlayTable
  readonly #locks = new Locks()
  readonly #jobs = new Map<string, Job>()
  /** Suspended sandboxes. */
  readonly #still = new Set<string>()
  #closed = false

  constructor(options: OverlaysOptions) {
    this.#options = options
    this.#table = new OverlayTable(options.db)
    this.#table.sweep()
    options.sandboxes.observe({
      began: ({ record }, how) => {
        this.#still.delete(record.id)
        if (how === 'created') return
        for (const overlay of this.#table.list(record.id))
          if (!hasEnded(overlay) && !this.#jobs.has(overlay.id)) this.#begin(overlay)
      },
      suspended: (sandboxId, { kept }) => {
        this.#still.add(sandboxId)
        if (!kept) this.#abandon(sandboxId)
      },
      gone: async (sandboxId, { removed }) => {
        this.#still.delete(sandboxId)
        for (const overlay of this.#all(sandboxId))
          if (!hasEnded(overlay)) this.#stop(overlay, 'The sandbox is gone.')
        if (removed) this.#table.removeOf(sandboxId)
      },
    })
  }

  /** Returns before anything is copied. */
  async create(sandboxId: string, input: CreateOverlayParsed): Promise<OverlayInfo> {
    const { guest, sandbox } = await this.#in(sandboxId)
    const { target, ignore = [], strategy = 'smart' } = input
    const source = posix.resolve('/', input.source)
    const spec = { source, target, root: posix.resolve(sandbox.workdir, target), ignore, strategy }
    rulesOf(spec)
    await checkEnds(guest, spec)
    // The sandbox may have ended meanwhile, and its overlays were removed with it.
    await this.#options.sandboxes.running(sandboxId)
    if (this.#table.count(sandboxId) >= LIMITS.overlays) {
      throw new IsletError('limit_exceeded', `A sandbox has at most ${LIMITS.overlays} overlays.`, {
        hint: 'Delete one; what it copied goes with it.',
      })
    }
    const record: OverlayRecord = {
      id: newId('overlay'),
      sandboxId,
      spec,
      state: { copyStatus: 'pending', stats: noStats() },
      createdAt: Date.now(),
    }
    this.#table.insert(record)
    const info = toInfo(record)
    this.#begin(record)
    return info
  }

  list(sandboxId: string): OverlayInfo[] {
    this.#options.sandboxes.record(sandboxId)
    return this.#all(sandboxId).map(toInfo)
  }

  get(sandboxId: string, id: string): OverlayInfo {
    return toInfo(this.#find(sandboxId, id))
  }

  /** Stops the copy, removes its files, and removes the record. */
  async destroy(sandboxId: string, id: string): Promise<void> {
    const record = this.#find(sandboxId, id)
    const { guest } = await this.#in(sandboxId)
    const job = this.#jobs.get(id)
    const isCopying = record.state.copyStatus === 'in_progress'
    // If the server is killed from here on, the next one does not repeat the copy.
    this.#stop(record, 'It is being removed.')
    if (isCopying) await job?.done
    if (record.state.before) await clearGround(guest, record.state.before)
    this.#table.remove(id)
  }

  /** Running copies are repeated by the next server. */
  async close(): Promise<void> {
    this.#closed = true
    const jobs = [...this.#jobs.values()]
    for (const { abort } of jobs) abort.abort()
    await Promise.all(jobs.map(({ done }) => done))
  }

  #begin(record: OverlayRecord): void {
    const abort = new AbortController()
    const why = { kind: 'job', id: record.id } as const
    const leave = this.#options.sandboxes.keepAwake(record.sandboxId, why)
    const turn = this.#locks.run([record.sandboxId], () => this.#copy(record, abort.signal))
    const done = turn
      .catch((error) => this.#options.log.error({ error, overlay: record.id }, 'overlay not recorded'))
      .finally(() => {
        leave()
        if (this.#jobs.get(record.id) === job) this.#jobs.delete(record.id)
      })
    const job = { record, abort, done }
    this.#jobs.set(record.id, job)
  }

  /** Running copies are repeated at the next start of the sandbox. */
  #abandon(sandboxId: string): void {
    for (const [id, { record, abort }] of this.#jobs) {
      if (record.sandboxId !== sandboxId) continue
      abort.abort()
      this.#jobs.delete(id)
    }
  }

  #stop(record: OverlayRecord, reason: string): void {
    if (!hasEnded(record)) Object.assign(record.state, { copyStatus: 'failed', copyError: reason })
    this.#table.saveState(record)
    this.#jobs.get(record.id)?.abort.abort()
  }

  async #copy(record: OverlayRecord, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    record.state.copyStatus = 'in_progress'
    this.#table.saveState(record)
    try {
      await this.#attempt(record, signal)
      record.state.copyStatus = 'complete'
    } catch (error) {
      if (signal.aborted || this.#closed || this.#still.has(record.sandboxId)) return
      const { message, code } = error instanceof IsletError ? error : new IsletError('internal')
      if (code === 'internal') this.#options.log.error({ error, overlay: record.id }, 'overlay failed')
      Object.assign(record.state, { copyStatus: 'failed', copyError: message })
    }
    this.#table.saveState(record)
  }

  async #attempt(record: OverlayRecord, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { guest, sandbox } = await this.#in(record.sandboxId)
        if (!record.state.before) {
          record.state.before = await surveyGround(guest, record.spec)
          signal.throwIfAborted()
          this.#table.saveState(record)
        }
        record.state.stats = noStats()
        const { spec, state } = record
        const { before: ground, stats } = state
        return await copyTemplate({
          guest,
          spec,
          ground: ground!,
          stats,
          owner: sandbox.user || undefined,
          signal,
        })
      } catch (error) {
        const isCut = error instanceof IsletError && error.details?.outcome === 'unknown'
        if (!isCut || attempt === ATTEMPTS) throw error
      }
    }
  }

  #find(sandboxId: string, id: string): OverlayRecord {
    this.#options.sandboxes.record(sandboxId)
    const found = this.#table.get(sandboxId, id)
    if (!found) throw new IsletError('overlay_not_found', `Sandbox ${sandboxId} has no overlay ${id}.`)
    return this.#live(found)
  }

  #all(sandboxId: string): OverlayRecord[] {
    return this.#table.list(sandboxId).map((record) => this.#live(record))
  }

  /** The statistics of a running copy are in memory. */
  #live(record: OverlayRecord): OverlayRecord {
    return this.#jobs.get(record.id)?.record ?? record
  }

  async #in(sandboxId: string): Promise<{ guest: Guest; sandbox: SandboxRecord }> {
    const { machine, record } = await this.#options.sandboxes.running(sandboxId)
    return { guest: machine.guest, sandbox: record }
  }
}

function hasEnded({ state }: OverlayRecord): boolean {
  return state.copyStatus === 'complete' || state.copyStatus === 'failed'
}

function noStats(): OverlayInfo['stats'] {
  return { copiedFiles: 0, copiedDirs: 0, linkedDirs: 0, skipped: [] }
}

function toInfo({ id, sandboxId, spec, state, createdAt }: OverlayRecord): OverlayInfo {
  const { source, target, strategy, ignore } = spec
  const { copyStatus, copyError, stats } = state
  return {
    id,
    sandboxId,
    source,
    target,
    strategy,
    ignore,
    createdAt: new Date(createdAt).toISOString(),
    copyStatus,
    ...(copyError !== undefined && { copyError }),
    stats,
  }
}
