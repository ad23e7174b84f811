// The server of a soak, as its clients meet it: it is killed now and then, its disk is full for a while, its clock jumps. Every failure
// of a call needs an excuse that lies in the same time; one without an excuse ends the run.
import { setTimeout as sleep } from 'node:timers/promises'
import { Refused } from '../faults/state-world.ts'
import type { TestServer } from '../support/server.ts'
import type { Clock } from './clock.ts'
import type { Disk } from './disk.ts'
import type { Known } from './model.ts'
import type { Tally } from './tally.ts'

/** It was carried out or not: a kill cut it off. */
export const LOST = Symbol('lost')
/** It was not carried out: there is no room. */
export const FULL = Symbol('full')

const FULL_CODES = new Set(['disk_low', 'server_disk_full', 'sandbox_disk_full'])
/** While the warden is dead and the server about to end, or a new server waits for a guest on a busy machine. */
const AWAY_CODES = new Set(['draining', 'engine_unavailable', 'timeout'])
/** Deleting makes room: it works on a full disk too. */
const MAKES_ROOM = new Set(['delete', 'delete a checkpoint', 'delete a snapshot'])
/** That something is not there, or is there already, is an answer. */
const ANSWERS = /_not_found$|^conflict$/
/** A connection of before a kill may break when it is used after it. */
const STALE_MS = 2000
/** A call that takes longer hangs. */
const HANGS_MS = 180_000

export interface CallOptions {
  /** Answer with the bytes. */
  raw?: boolean
  headers?: Record<string, string>
}

export interface WorldParts {
  server: TestServer
  clock: Clock
  disk: Disk | undefined
  tally: Tally
}

export class World {
  readonly server: TestServer
  readonly clock: Clock
  readonly disk: Disk | undefined
  readonly tally: Tally
  /** The sandboxes whose first process may be killed. */
  readonly sandboxes = new Set<Known>()
  readonly #abort = new AbortController()
  /** Aborted when there is no more to be found out. */
  readonly signal = this.#abort.signal
  #up: PromiseWithResolvers<void> | undefined
  #lastDownAt = Number.NEGATIVE_INFINITY

  constructor({ server, clock, disk, tally }: WorldParts) {
    this.server = server
    this.clock = clock
    this.disk = disk
    this.tally = tally
  }

  /** The first failure; the others are because of it. */
  failure: unknown

  /** The others end too. */
  abort = (error: unknown): never => {
    if (!this.signal.aborted) this.failure = error
    this.#abort.abort()
    this.isUp()
    throw error
  }

  isDown(): void {
    this.#lastDownAt = Date.now()
    this.#up ??= Promise.withResolvers()
  }

  isUp(): void {
    this.#lastDownAt = Date.now()
    this.#up?.resolve()
    this.#up = undefined
  }

  async up(): Promise<void> {
    // The caller's connection may break before the kill is noticed here.
    await sleep(5)
    await this.#up?.promise
    this.signal.throwIfAborted()
  }

  wasDown(since: number): boolean {
    return this.#up !== undefined || this.#lastDownAt > since - STALE_MS
  }

  /** The excuse for a refusal with this code of a call that began then; undefined: there is none. */
  excuse(code: string, since: number): typeof LOST | typeof FULL | undefined {
    if (FULL_CODES.has(code) && this.disk?.wasFull(since)) return FULL
    return AWAY_CODES.has(code) && this.wasDown(since) ? LOST : undefined
  }

  /** One attempt. */
  async call<T>(
    kind: string,
    method: string,
    path: string,
    body?: unknown,
    options: CallOptions = {},
  ): Promise<T | typeof LOST | typeof FULL> {
    const since = Date.now()
    const counts = this.tally.of(kind)
    try {
      const answer = await this.#send<T>(method, path, body, options)
      counts.acknowledged++
      return answer
    } catch (error) {
      if (error instanceof Refused && ANSWERS.test(error.code)) counts.acknowledged++
      else if (error instanceof Refused) this.tally.refused(kind, error.code)
      if (error instanceof Refused) {
        const excuse = this.excuse(error.code, since)
        if (excuse === undefined || (excuse === FULL && MAKES_ROOM.has(kind))) throw error
        if (excuse === LOST) await this.up()
        return excuse
      }
      this.signal.throwIfAborted()
      const { name } = error as Error
      if (name === 'TimeoutError') throw new Error(`${method} ${path} hangs`, { cause: error })
      if (!this.wasDown(since))
        throw new Error(`${method} ${path} broke off, and nobody had killed the server`, { cause: error })
      counts.cutOff++
      await this.up()
      return LOST
    }
  }

  async #send<T>(method: string, path: string, body: unknown, options: CallOptions): Promise<T> {
    const isBytes = Buffer.isBuffer(body)
    const type = isBytes ? 'application/octet-stream' : 'application/json'
    const answer = await this.server.fetch(`/v1${path}`, {
      method,
      headers: { ...(body !== undefined && { 'Content-Type': type }), ...options.headers },
      body: (isBytes ? body : JSON.stringify(body)) as never,
      signal: AbortSignal.timeout(HANGS_MS),
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (!answer.ok) throw new Refused(JSON.parse(bytes.toString()))
    if (options.raw) return bytes as T
    return (bytes.length === 0 ? undefined : JSON.parse(bytes.toString())) as T
  }
}
