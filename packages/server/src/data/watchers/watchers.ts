// The file watchers of all sandboxes. They are stored, and watch again after a restart of the server.
import { posix } from 'node:path'
import {
  type CreateWatcherParsed,
  IsletError,
  LIMITS,
  newId,
  routePath,
  type WatcherInfo,
  type WatcherMessage,
} from '@islet/contract'
import type { Beginning, RunningSandbox, SandboxObserver } from '../../control/fleet.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import { type WatcherRecord, WatcherTable } from '../../db/watchers.ts'
import type { Log } from '../../log.ts'
import { Budget } from '../bounded-queue.ts'
import { Watching } from './watching.ts'

interface WatchersOptions {
  db: Db
  sandboxes: Sandboxes
  log: Log
}

/** What may wait for all clients of all watchers of a sandbox. */
const MAX_WAITING_BYTES = 96 * 1024 * 1024

export class Watchers implements SandboxObserver {
  readonly #options: WatchersOptions
  readonly #table: WatcherTable
  readonly #watching = new Map<string, Watching>()
  /** How many are being created in each sandbox. */
  readonly #creating = new Map<string, number>()
  /** The memory for messages that wait for clients, per sandbox. */
  readonly #waiting = new Map<string, Budget>()

  constructor(options: WatchersOptions) {
    this.#options = options
    this.#table = new WatcherTable(options.db)
    this.#table.sweep()
    options.sandboxes.observe(this)
  }

  /** Changes after the answer are seen, and held for the first client. */
  async create(
    sandboxId: string,
    input: CreateWatcherParsed,
    options: { signal?: AbortSignal } = {},
  ): Promise<WatcherInfo> {
    const sandbox = await this.#options.sandboxes.running(sandboxId)
    const record: WatcherRecord = {
      id: newId('watcher'),
      sandboxId,
      path: posix.resolve(sandbox.record.workdir, input.path),
      includeContent: input.includeContent ?? false,
      ignored: input.ignored ?? [],
      encoding: input.encoding ?? 'raw',
      reason: null,
      createdAt: Date.now(),
    }
    const watching = this.#watch(record, sandbox)
    const leave = this.#enter(sandboxId)
    try {
      await watching.open(options.signal)
      // The sandbox may have ended meanwhile, and its watchers were removed with it.
      await this.#options.sandboxes.running(sandboxId)
      this.#table.insert(record)
      this.#watching.set(record.id, watching)
    } catch (error) {
      watching.close()
      throw error
    } finally {
      leave()
    }
    return toInfo(record)
  }

  list(sandboxId: string): WatcherInfo[] {
    this.#options.sandboxes.record(sandboxId)
    return this.#table.list(sandboxId).map(toInfo)
  }

  get(sandboxId: string, id: string): WatcherInfo {
    this.#options.sandboxes.record(sandboxId)
    const record = this.#table.get(sandboxId, id)
    if (!record) throw notFound(sandboxId, id)
    return toInfo(record)
  }

  delete(sandboxId: string, id: string): void {
    this.get(sandboxId, id)
    this.#table.remove(sandboxId, id)
    this.#watching.get(id)?.close()
    this.#watching.delete(id)
  }

  /** First `start`, then changes, last `exit` or a thrown error. Many clients may follow one watcher. */
  async events(
    sandboxId: string,
    id: string,
  ): Promise<{ messages: AsyncIterable<WatcherMessage>; close(): void }> {
    this.get(sandboxId, id)
    await this.#options.sandboxes.running(sandboxId)
    const watching = this.#watching.get(id)
    if (!watching) throw notFound(sandboxId, id)
    const { messages, close } = await watching.connect()
    const start = { type: 'start', watcher: toInfo(watching.record) } as const
    return { messages: framed(start, messages), close }
  }

  began(sandbox: RunningSandbox, how: Beginning): void {
    if (how === 'created') return
    for (const record of this.#table.list(sandbox.record.id)) {
      const known = this.#watching.get(record.id)
      if (known) {
        if (how !== 'resumed') known.moveTo(sandbox.machine.guest, record)
        continue
      }
      const watching = this.#watch(record, sandbox)
      this.#watching.set(record.id, watching)
      watching.resume()
    }
  }

  async gone(sandboxId: string, { removed }: { removed: boolean }): Promise<void> {
    const error = removed ? undefined : new IsletError('sandbox_lost', `Sandbox ${sandboxId} is gone.`)
    for (const [id, watching] of this.#watching) {
      if (watching.record.sandboxId !== sandboxId) continue
      watching.close(error)
      this.#watching.delete(id)
    }
    this.#table.removeAll(sandboxId)
    this.#waiting.delete(sandboxId)
  }

  #watch(record: WatcherRecord, { machine }: RunningSandbox): Watching {
    const { log } = this.#options
    const waiting = this.#waiting.get(record.sandboxId) ?? new Budget(MAX_WAITING_BYTES)
    this.#waiting.set(record.sandboxId, waiting)
    return new Watching(record, {
      guest: machine.guest,
      waiting,
      onStopped: (reason) => {
        log.info({ sandbox: record.sandboxId, watcher: record.id, reason }, 'watcher stopped')
        this.#table.stopped(record.id, reason)
      },
      onBug: (error) => log.error({ err: error, watcher: record.id }, 'watcher failed'),
    })
  }

  /** Counts a watcher that is being created; call the returned function afterwards. */
  #enter(sandboxId: string): () => void {
    const creating = this.#creating.get(sandboxId) ?? 0
    if (this.#table.count(sandboxId) + creating >= LIMITS.watchers)
      throw new IsletError('limit_exceeded', `A sandbox has at most ${LIMITS.watchers} watchers.`, {
        hint: 'Destroy some: DELETE /v1/sandboxes/{id}/watchers/{wid}.',
      })
    this.#creating.set(sandboxId, creating + 1)
    return () => {
      const left = this.#creating.get(sandboxId)! - 1
      if (left > 0) this.#creating.set(sandboxId, left)
      else this.#creating.delete(sandboxId)
    }
  }
}

function notFound(sandboxId: string, id: string): IsletError {
  return new IsletError('watcher_not_found', `There is no watcher ${id} in ${sandboxId}.`)
}

function toInfo(record: WatcherRecord): WatcherInfo {
  const { id, sandboxId, path, includeContent, ignored, encoding, reason } = record
  return {
    id,
    sandboxId,
    path,
    includeContent,
    ignored,
    encoding,
    status: reason === null ? 'active' : 'stopped',
    reason,
    channel: routePath('watcherEvents', { id: sandboxId, wid: id }),
    createdAt: new Date(record.createdAt).toISOString(),
  }
}

async function* framed(
  start: WatcherMessage,
  messages: AsyncIterable<WatcherMessage>,
): AsyncGenerator<WatcherMessage> {
  yield start
  yield* messages
  yield { type: 'exit' }
}
