// One client: it does one step after another on its own sandboxes and knows their expected content.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CheckpointInfo, ExecResult, Sandbox } from '@islet/contract'
import { Refused, unless } from '../faults/state-world.ts'
import { Follower } from './follower.ts'
import type { Known, Saved, SavedOf } from './model.ts'
import type { Random } from './random.ts'
import { type CallOptions, FULL, LOST, type World } from './world.ts'

/** Allowed error codes of calls to a sandbox whose first process was just killed. */
const WOUND_CODES = new Set(['sandbox_lost', 'invalid_state', 'engine_unavailable'])
/** If a command that begins this long after the kill runs, the sandbox survived. */
const OVER_MS = 10_000
/** While there is no room, and until there is. */
const AGAIN_MS = 250
const DONE_BY_MS = 180_000
const LINES = 40
/** The share of sandboxes whose events are also read as a stream. */
const FOLLOWED = 0.3

export class Client {
  readonly world: World
  readonly name: string
  readonly random: Random
  sandboxes: Known[] = []
  checkpoints: SavedOf[] = []
  snapshots: Saved[] = []
  readonly #done: string[] = []
  #count = 0

  constructor(world: World, name: string, random: Random) {
    this.world = world
    this.name = name
    this.random = random
  }

  /** A failure says what was done last. */
  async explained(work: Promise<void>): Promise<void> {
    await work.catch((error) => {
      if (this.world.signal.aborted) throw error
      throw new Error(`Client ${this.name} did, newest last:\n${this.#done.join('\n')}\n`, { cause: error })
    })
  }

  note(line: string): void {
    this.#done.push(`  ${new Date().toISOString().slice(11, 23)} ${line}`)
    if (this.#done.length > LINES) this.#done.shift()
  }

  know(sandbox: Known): void {
    this.sandboxes.push(sandbox)
    if (this.random.chance(FOLLOWED)) sandbox.follower = new Follower(this.world, sandbox.id)
    this.world.sandboxes.add(sandbox)
  }

  /** One attempt. Returns the answer, LOST (unknown whether it was done) or FULL (not done). After a kill of the first process: maybe LOST. */
  async try<T>(
    kind: string,
    sandbox: Known | undefined,
    method: string,
    path: string,
    body?: unknown,
    options?: CallOptions,
  ): Promise<T | typeof LOST | typeof FULL> {
    this.note(`${kind}: ${method} ${path}${body === undefined ? '' : ` ${brief(body)}`}`)
    try {
      const answer = await this.world.call<T>(kind, method, path, body, options)
      if (answer === LOST || answer === FULL) this.note(answer === LOST ? '  (cut off)' : '  (no room)')
      return answer
    } catch (error) {
      if (!(error instanceof Refused) || !sandbox) throw error
      this.note(`  (${error.code})`)
      if (sandbox.wound === undefined || !WOUND_CODES.has(error.code)) throw error
      await this.heal(sandbox)
      return LOST
    }
  }

  /** Again and again until it was done. */
  async surely<T>(
    kind: string,
    sandbox: Known | undefined,
    method: string,
    path: string,
    body?: unknown,
    options?: CallOptions,
  ): Promise<T> {
    const deadline = Date.now() + DONE_BY_MS
    for (;;) {
      const answer = await this.try<T>(kind, sandbox, method, path, body, options)
      if (answer !== LOST && answer !== FULL) return answer
      if (Date.now() > deadline) throw new Error(`${kind} is not done after ${DONE_BY_MS} ms: ${path}`)
      if (answer === FULL) await sleep(AGAIN_MS)
    }
  }

  /** A command that succeeds, however often it takes. While there is no room it may fail. */
  async exec(kind: string, sandbox: Known, script: string, ...args: string[]): Promise<ExecResult> {
    const deadline = Date.now() + DONE_BY_MS
    for (;;) {
      const since = Date.now()
      const command = ['sh', '-c', script, 'sh', ...args]
      const result = await this.surely<ExecResult>(kind, sandbox, 'POST', `/sandboxes/${sandbox.id}/exec`, {
        command,
      })
      if (sandbox.wound !== undefined && since > sandbox.wound + OVER_MS) sandbox.wound = undefined
      if (result.exitCode === 0) return result
      const isExcused = this.world.disk?.wasFull(since) || sandbox.wound !== undefined
      if (!isExcused || Date.now() > deadline) assert.fail(JSON.stringify(result))
      await sleep(AGAIN_MS)
    }
  }

  /** Its first process was killed. If that made it fail, it goes on from its files: a checkpoint of it is made and restored. */
  heal(sandbox: Known): Promise<void> {
    sandbox.healing ??= this.#heal(sandbox).finally(() => {
      sandbox.healing = undefined
    })
    return sandbox.healing
  }

  async #heal(sandbox: Known): Promise<void> {
    const path = `/sandboxes/${sandbox.id}`
    const name = this.tag()
    let made: CheckpointInfo | undefined
    for (;;) {
      const { status } = await this.surely<Sandbox>('get', undefined, 'GET', path)
      if (status !== 'failed') break
      made ??= await this.#found(path, name)
      const body = { name }
      const answer =
        made ?? (await this.try<CheckpointInfo>('heal', sandbox, 'POST', `${path}/checkpoints`, body))
      if (answer === LOST || answer === FULL) {
        await sleep(AGAIN_MS)
        continue
      }
      made = answer
      sandbox.losses++
      sandbox.heals++
      await this.#restore(`${path}/checkpoints/${made.id}/restore`)
    }
    if (made)
      await this.surely('heal', undefined, 'DELETE', `${path}/checkpoints/${made.id}`).catch(
        unless('checkpoint_not_found'),
      )
    else await sleep(AGAIN_MS)
  }

  /** It may be wounded again meanwhile. */
  async #restore(path: string): Promise<void> {
    await this.world.call('heal', 'POST', path).catch((error) => {
      if (!(error instanceof Refused) || !WOUND_CODES.has(error.code)) throw error
    })
  }

  async #found(path: string, name: string): Promise<CheckpointInfo | undefined> {
    const { checkpoints } = await this.surely<{ checkpoints: CheckpointInfo[] }>(
      'list',
      undefined,
      'GET',
      `${path}/checkpoints`,
    )
    return checkpoints.find((checkpoint) => checkpoint.name === name)
  }

  tag(): string {
    return `${this.name}-${this.#count++}`
  }

  text(): string {
    const length = this.random.chance(0.1) ? 50_000 : 10
    return `${this.name}.${this.#count++}.`.repeat(length).slice(0, length)
  }
}

function brief(body: unknown): string {
  const text = Buffer.isBuffer(body) ? `${body.length} bytes` : JSON.stringify(body)
  return text.length > 160 ? `${text.slice(0, 160)}…` : text
}
