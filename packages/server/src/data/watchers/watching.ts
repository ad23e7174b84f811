// One watcher: passes the guest's events to all connected clients. While the guest is not connected it waits, then watches again
// and sends `overflow`. Events before the first client are held for it.
import { setTimeout } from 'node:timers/promises'
import { type FileChange, IsletError, type WatcherMessage } from '@islet/contract'
import type { WatcherRecord } from '../../db/watchers.ts'
import type { EntryType, Guest, WatchEvent } from '../../guest/guest.ts'
import { BoundedQueue, type Budget } from '../bounded-queue.ts'
import { createIgnore, plainNames } from '../files/globs.ts'
import { InOrder, readContent } from './content.ts'

/** Files of one watcher that are read at the same time, each up to LIMITS.watchContentBytes. */
const READS_AT_ONCE = 4
const MAX_CLIENTS = 64
const QUEUE = { maxMessages: 16_384, maxBytes: 32 * 1024 * 1024 }
/** Memory of a message beside its path and content. */
const MESSAGE_BYTES = 128
/** Between two attempts to watch again: while the guest is not connected, and after the watched path was replaced. */
const AWAY_MS = 100
const REPLACED_MS = 20

interface WatchingOptions {
  guest: Guest
  /** Shared with the other watchers of the sandbox: what may wait for their clients. */
  waiting?: Budget
  /** The watched path is gone or cannot be watched any more. */
  onStopped(reason: string): void
  onBug(error: unknown): void
}

export class Watching {
  record: WatcherRecord
  readonly #options: WatchingOptions
  #guest: Guest
  #isIgnored: (path: string) => boolean
  readonly #names: string[]
  readonly #order = new InOrder<WatcherMessage>(READS_AT_ONCE, (message) => this.#send(message))
  readonly #closing = new AbortController()
  readonly #opened = Promise.withResolvers<void>()
  readonly #clients = new Set<BoundedQueue<WatcherMessage>>()
  #held: BoundedQueue<WatcherMessage> | undefined
  #end: { error?: IsletError } | undefined
  /** The type of the watched path; undefined before the first stat. */
  #type: EntryType | undefined
  #isReplaced = false
  #isRunning = false
  /** This guest is gone for good; `moveTo` gives the next one. */
  #lostGuest: Guest | undefined

  constructor(record: WatcherRecord, options: WatchingOptions) {
    this.record = record
    this.#options = options
    this.#guest = options.guest
    this.#held = newQueue(options.waiting)
    this.#isIgnored = createIgnore(record.ignored, record.path)
    this.#names = plainNames(record.ignored)
    if (record.reason !== null) this.#finish(new IsletError('invalid_state', stoppedBecause(record.reason)))
  }

  /** Resolves once everything is watched: later changes are seen. Fails if the path cannot be watched. */
  async open(signal: AbortSignal | undefined): Promise<void> {
    const leave = () => this.#closing.abort(signal?.reason)
    signal?.addEventListener('abort', leave, { once: true })
    try {
      const events = await this.#watch()
      this.#opened.resolve()
      this.#run(events)
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  /** For a watcher from before a restart, which may have missed changes. */
  resume(): void {
    if (!this.#end) this.#run(undefined)
  }

  /** Its sandbox was restarted, perhaps with other files: the same clients go on, after an overflow. */
  moveTo(guest: Guest, record: WatcherRecord): void {
    this.#guest = guest
    this.record = record
    this.#isIgnored = createIgnore(record.ignored, record.path)
    if (!this.#end && !this.#isRunning) this.#run(undefined)
  }

  /** Adds a client, which reads at its own pace. Waits while the watch is being set up again. */
  async connect(): Promise<{ messages: AsyncIterable<WatcherMessage>; close(): void }> {
    await this.#opened.promise
    if (this.#clients.size >= MAX_CLIENTS)
      throw new IsletError('limit_exceeded', `A watcher has at most ${MAX_CLIENTS} clients.`)
    const queue = this.#held ?? newQueue(this.#options.waiting)
    const isFirst = this.#held !== undefined
    this.#held = undefined
    this.#clients.add(queue)
    if (this.#end) queue.end(this.#end.error)
    const close = () => {
      if (!this.#clients.delete(queue)) return
      // The first client left before it read anything: keep the messages for the next one.
      if (isFirst && !queue.isRead && !this.#closing.signal.aborted) this.#held = queue
      else queue.close()
    }
    return { messages: queue, close }
  }

  /** Ends all clients, with the error if one is given. Closing twice is fine. */
  close(error?: IsletError): void {
    this.#finish(error)
    this.#held?.close()
    this.#held = undefined
    this.#closing.abort()
  }

  #run(events: AsyncIterable<WatchEvent> | undefined): void {
    this.#isRunning = true
    this.#follow(events)
      .catch((error) => {
        this.#options.onBug(error)
        this.close(new IsletError('internal'))
      })
      .finally(() => {
        this.#isRunning = false
        const isMoved = this.#lostGuest !== undefined && this.#lostGuest !== this.#guest
        if (isMoved && !this.#end) this.#run(undefined)
      })
  }

  async #follow(first: AsyncIterable<WatchEvent> | undefined): Promise<void> {
    for (let events = first; !this.#end; events = undefined) {
      try {
        events ??= await this.#watchAgain()
        if (!events) return
        for await (const event of events) await this.#take(event)
      } catch (error) {
        if (this.#end) return
        if (!(error instanceof IsletError)) throw error
        this.#isReplaced = await this.#looksReplaced(error)
        if (!this.#isReplaced && !isAway(error)) return this.#stop(error)
        await setTimeout(this.#isReplaced ? REPLACED_MS : AWAY_MS, undefined, { ref: false })
      }
    }
  }

  /** Undefined: the guest is gone for good. The clients wait for `moveTo` or `close`. */
  async #watchAgain(): Promise<AsyncIterable<WatchEvent> | undefined> {
    const guest = this.#guest
    try {
      await guest.ready({ signal: this.#closing.signal })
    } catch {
      this.#lostGuest = guest
      return undefined
    }
    const events = await this.#watch()
    if (this.#isReplaced && this.#type !== 'directory') await this.#takeRoot('changed')
    else await this.#order.add({ type: 'overflow' })
    this.#opened.resolve()
    return events
  }

  async #watch(): Promise<AsyncIterable<WatchEvent>> {
    const options = { recursive: true, ignore: this.#names, signal: this.#closing.signal }
    const guest = this.#guest
    const events = await guest.watch(this.record.path, options)
    this.#type = (await guest.stat(this.record.path).catch(() => undefined))?.type ?? this.#type
    return events
  }

  /** Programs save a file by renaming another over it: then the watched file is gone, but the path exists. */
  async #looksReplaced(error: IsletError): Promise<boolean> {
    if (error.code !== 'file_not_found' || this.#type === undefined) return false
    return this.#guest.stat(this.record.path).then(
      () => true,
      () => false,
    )
  }

  #takeRoot(kind: 'changed' | 'removed'): Promise<void> {
    return this.#take({ kind, path: this.record.path, directory: this.#type === 'directory' })
  }

  async #take(event: WatchEvent): Promise<void> {
    if (event.kind === 'overflow') return this.#order.add({ type: 'overflow' })
    if (this.#isIgnored(event.path)) return
    const change = { type: 'change', event: nameOf(event), path: event.path } as const
    const isHeard = this.#held !== undefined || this.#clients.size > 0
    const hasContent = this.record.includeContent && !event.directory && event.kind !== 'removed'
    await this.#order.add(hasContent && isHeard ? this.#withContent(change) : change)
  }

  async #withContent<Change extends { path: string }>(change: Change) {
    const options = { encoding: this.record.encoding, signal: this.#closing.signal }
    return { ...change, ...(await readContent(this.#guest, change.path, options)) }
  }

  #send(message: WatcherMessage): void {
    this.#held?.push(message)
    for (const client of this.#clients) client.push(message)
  }

  async #stop(error: IsletError): Promise<void> {
    const isGone = error.code === 'file_not_found'
    if (isGone && this.#type !== undefined) await this.#takeRoot('removed')
    await this.#order.finished()
    const reason = isGone ? `The watched path ${this.record.path} is gone.` : error.message
    this.record.reason = reason
    this.#options.onStopped(reason)
    this.#finish(new IsletError(error.code, stoppedBecause(reason)))
  }

  #finish(error?: IsletError): void {
    this.#end ??= { error }
    this.#held?.end(error)
    for (const client of this.#clients) client.end(error)
    this.#opened.resolve()
  }
}

/** What waits for one client. `shared`: with the other clients of the sandbox. */
export function newQueue(shared?: Budget): BoundedQueue<WatcherMessage> {
  return new BoundedQueue({ ...QUEUE, sizeOf, overflow: { type: 'overflow' }, shared })
}

function sizeOf(message: WatcherMessage): number {
  if (message.type !== 'change') return MESSAGE_BYTES
  // In memory a character takes up to two bytes.
  return MESSAGE_BYTES + 2 * (message.path.length + (message.content?.length ?? 0))
}

function nameOf({ kind, directory }: WatchEvent): FileChange['event'] {
  if (kind === 'created') return directory ? 'addDir' : 'add'
  if (kind === 'removed') return directory ? 'unlinkDir' : 'unlink'
  return 'change'
}

/** The guest redials, unless the sandbox has ended. */
function isAway(error: IsletError): boolean {
  return error.code === 'sandbox_lost' || error.code === 'timeout'
}

function stoppedBecause(reason: string): string {
  return `The watcher has stopped: ${reason}`
}
