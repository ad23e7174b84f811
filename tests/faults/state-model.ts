// One client of the random test: it does one thing after another to sandboxes of its own and knows what they must hold.
//
// A call that a crash cut off was carried out or not. What can be repeated is repeated; for the rest there are several states that
// a sandbox may be in, until a look says which.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { CheckpointInfo, ExecResult, Sandbox, SnapshotInfo } from '@islet/contract'
import type { TestServer } from '../support/server.ts'
import { call, Refused, unless } from './state-world.ts'

/** A server that is killed now and then. */
export interface World {
  server: TestServer
  /** Aborted when there is no more to be found out. */
  signal: AbortSignal
  /** Resolves when it is up. */
  up(): Promise<void>
}

interface State {
  /** Path → content. */
  files: Record<string, string>
  store: Record<string, string>
  env: string
}

interface Known {
  id: string
  states: State[]
}

interface KnownCheckpoint extends Known {
  sandboxId: string
}

const LOST = Symbol('whether it was done is not known')
const MAX_SANDBOXES = 3
const MAX_SAVED = 4
const NAMES = ['a', 'b', 'c d', 'deep/e', 'deep/er/f', 'deep/er/g']
/** A checkpoint may have been made between the two steps of a write. */
const READ = 'mkdir -p ~/m && cd ~/m && find . -type f ! -name "*.tmp" -exec sha256sum {} +; echo "$MODEL"'

export class Client {
  /** What it did, newest last. */
  readonly done: string[] = []
  readonly #world: World
  readonly #name: string
  readonly #random: () => number
  #sandboxes: Known[] = []
  #checkpoints: KnownCheckpoint[] = []
  #snapshots: Known[] = []
  #count = 0

  constructor(world: World, name: string, random: () => number) {
    this.#world = world
    this.#name = name
    this.#random = random
  }

  /** A failure says what was done last. */
  async step(): Promise<void> {
    await this.#explained(this.#step())
  }

  async #step(): Promise<void> {
    const sandbox = this.#pick(this.#sandboxes)
    if (!sandbox) return this.#create()
    const weighted: [number, (sandbox: Known) => Promise<void>][] = [
      [this.#sandboxes.length < MAX_SANDBOXES ? 2 : 0, () => this.#create()],
      [6, (one) => this.#write(one)],
      [2, (one) => this.#removeFile(one)],
      [3, (one) => this.#setStore(one)],
      [1, (one) => this.#setEnv(one)],
      [5, (one) => this.#checkpoint(one)],
      [2, (one) => this.#checkpointWhileWriting(one)],
      [4, (one) => this.#restore(one)],
      [3, (one) => this.#fork(one)],
      [2, () => this.#createFromCheckpoint()],
      [2, (one) => this.#snapshot(one)],
      [1, () => this.#createFromSnapshot()],
      [3, (one) => this.#move(one)],
      [2, () => this.#deleteCheckpoint()],
      [1, () => this.#deleteSnapshot()],
      [1, (one) => this.#deleteSandbox(one)],
      [4, (one) => this.#verify(one)],
    ]
    let at = this.#random() * weighted.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, work] of weighted) {
      at -= weight
      if (at < 0) return work(sandbox)
    }
  }

  /** Everything is as it must be, also what was saved. */
  async finish(): Promise<void> {
    await this.#explained(this.#finish())
  }

  async #finish(): Promise<void> {
    for (const sandbox of [...this.#sandboxes]) await this.#verify(sandbox)
    for (const checkpoint of this.#checkpoints) {
      await this.#makeFrom(`/checkpoints/${checkpoint.id}/sandboxes`, {}, checkpoint.states)
      await this.#verifyAndDeleteLast()
    }
    for (const snapshot of this.#snapshots) {
      await this.#makeFrom('/sandboxes', { snapshot: snapshot.id }, snapshot.states)
      await this.#verifyAndDeleteLast()
    }
  }

  async clear(): Promise<void> {
    for (const sandbox of [...this.#sandboxes]) await this.#deleteSandbox(sandbox)
    while (this.#checkpoints.length > 0) await this.#deleteCheckpoint()
    while (this.#snapshots.length > 0) await this.#deleteSnapshot()
  }

  async #create(): Promise<void> {
    const env = this.#text()
    await this.#makeFrom('/sandboxes', { runtime: 'host', env: { MODEL: env } }, [
      { files: {}, store: {}, env },
    ])
  }

  async #createFromCheckpoint(): Promise<void> {
    const from = this.#pick(this.#checkpoints)
    if (!from || this.#sandboxes.length >= MAX_SANDBOXES) return
    await this.#makeFrom(`/checkpoints/${from.id}/sandboxes`, {}, from.states)
  }

  async #createFromSnapshot(): Promise<void> {
    const from = this.#pick(this.#snapshots)
    if (!from || this.#sandboxes.length >= MAX_SANDBOXES) return
    await this.#makeFrom('/sandboxes', { snapshot: from.id }, from.states)
  }

  async #makeFrom(path: string, body: object, states: State[]): Promise<void> {
    const tag = this.#tag()
    const made = await this.#try<Sandbox>(`create ${tag}`, 'POST', path, { ...body, metadata: { tag } })
    if (made === LOST) await this.#adopt(tag, states)
    else this.#sandboxes.push({ id: made.id, states })
  }

  /** What a crash left of what was to be made under this tag. */
  async #adopt(tag: string, states: State[]): Promise<void> {
    const path = `/sandboxes?metadata=${encodeURIComponent(`tag=${tag}`)}`
    const { sandboxes } = await this.#surely<{ sandboxes: Sandbox[] }>('GET', path)
    for (const { id } of sandboxes) this.#sandboxes.push({ id, states })
  }

  async #write(sandbox: Known): Promise<void> {
    const [name, content] = [this.#pick(NAMES)!, this.#text()]
    await this.#exec(
      sandbox,
      'mkdir -p ~/m && cd ~/m && mkdir -p "$(dirname "$1")" && printf %s "$2" > "$1.tmp" && mv "$1.tmp" "$1"',
      name,
      content,
    )
    this.#apply(sandbox, (state) => ({ ...state, files: { ...state.files, [name]: content } }))
  }

  async #removeFile(sandbox: Known): Promise<void> {
    const isDeep = this.#random() < 0.3
    const name = isDeep ? 'deep' : this.#pick(NAMES)!
    await this.#exec(sandbox, 'rm -rf ~/m/"$1"', name)
    this.#apply(sandbox, (state) => ({
      ...state,
      files: without(state.files, (path) => path === name || path.startsWith(`${name}/`)),
    }))
  }

  async #setStore(sandbox: Known): Promise<void> {
    const [key, value] = [this.#pick(NAMES)!.replaceAll('/', '.'), this.#text()]
    const path = `/sandboxes/${sandbox.id}/store/${encodeURIComponent(key)}`
    if (this.#random() < 0.25) {
      await this.#surely('DELETE', path)
      this.#apply(sandbox, (state) => ({ ...state, store: without(state.store, (name) => name === key) }))
    } else {
      await this.#surely('PUT', path, { value })
      this.#apply(sandbox, (state) => ({ ...state, store: { ...state.store, [key]: value } }))
    }
  }

  async #setEnv(sandbox: Known): Promise<void> {
    const env = this.#text()
    await this.#surely('PATCH', `/sandboxes/${sandbox.id}`, { env: { MODEL: env } })
    this.#apply(sandbox, (state) => ({ ...state, env }))
  }

  async #checkpoint(sandbox: Known): Promise<void> {
    if (this.#checkpoints.length >= MAX_SAVED) await this.#deleteCheckpoint()
    const name = this.#tag()
    const path = `/sandboxes/${sandbox.id}/checkpoints`
    const { states } = sandbox
    const made = await this.#try<CheckpointInfo>(`checkpoint ${name}`, 'POST', path, { name })
    const found = made === LOST ? await this.#findCheckpoint(path, name) : made
    if (found) this.#checkpoints.push({ id: found.id, sandboxId: sandbox.id, states })
  }

  async #findCheckpoint(path: string, name: string): Promise<CheckpointInfo | undefined> {
    const { checkpoints } = await this.#surely<{ checkpoints: CheckpointInfo[] }>('GET', path)
    return checkpoints.find((checkpoint) => checkpoint.name === name)
  }

  /** The checkpoint has what was written at the same time, or not. */
  async #checkpointWhileWriting(sandbox: Known): Promise<void> {
    const before = sandbox.states
    const [first, second] = this.#random() < 0.5 ? [0, 1] : [1, 0]
    const works = [
      () => this.#checkpoint(sandbox),
      () => (this.#random() < 0.5 ? this.#write(sandbox) : this.#setStore(sandbox)),
    ]
    const known = new Set(this.#checkpoints)
    await Promise.all([works[first]!(), works[second]!()])
    for (const made of this.#checkpoints) if (!known.has(made)) made.states = [...before, ...sandbox.states]
  }

  async #restore(sandbox: Known): Promise<void> {
    const checkpoint = this.#pick(this.#checkpoints.filter(({ sandboxId }) => sandboxId === sandbox.id))
    if (!checkpoint) return
    const path = `/sandboxes/${sandbox.id}/checkpoints/${checkpoint.id}/restore`
    const restored = await this.#try(`restore ${checkpoint.id}`, 'POST', path)
    sandbox.states = restored === LOST ? [...sandbox.states, ...checkpoint.states] : checkpoint.states
  }

  async #fork(sandbox: Known): Promise<void> {
    const count = Math.min(1 + Math.floor(this.#random() * 3), MAX_SANDBOXES + 1 - this.#sandboxes.length)
    if (count < 1) return
    const tag = this.#tag()
    const path = `/sandboxes/${sandbox.id}/fork`
    const { states } = sandbox
    const answer = await this.#try<{ forks: ({ ok: true; sandbox: Sandbox } | { ok: false })[] }>(
      `fork ${tag} of ${sandbox.id}`,
      'POST',
      path,
      { count, metadata: { tag } },
    )
    if (answer === LOST) return this.#adopt(tag, states)
    assert.ok(
      answer.forks.every(({ ok }) => ok),
      JSON.stringify(answer),
    )
    for (const fork of answer.forks) if (fork.ok) this.#sandboxes.push({ id: fork.sandbox.id, states })
  }

  async #snapshot(sandbox: Known): Promise<void> {
    if (this.#snapshots.length >= MAX_SAVED) await this.#deleteSnapshot()
    const name = this.#tag()
    const checkpoint = this.#random() < 0.5 ? this.#pick(this.#checkpoints) : undefined
    const of = checkpoint ? { checkpoint: checkpoint.id } : { sandbox: sandbox.id }
    const { states } = checkpoint ?? sandbox
    const body = { ...of, name, tag: `latest-${this.#name}` }
    const made = await this.#try<SnapshotInfo>(`snapshot ${name}`, 'POST', '/snapshots', body)
    if (made !== LOST) this.#snapshots.push({ id: made.id, states })
    else {
      const { snapshots } = await this.#surely<{ snapshots: SnapshotInfo[] }>(
        'GET',
        `/snapshots?name=${name}`,
      )
      for (const { id } of snapshots) this.#snapshots.push({ id, states })
    }
  }

  /** To another state of its life; using it brings it back. */
  async #move(sandbox: Known): Promise<void> {
    const { status } = await this.#surely<Sandbox>('GET', `/sandboxes/${sandbox.id}`)
    const verbs: Partial<Record<string, string[]>> = {
      running: ['hibernate', 'pause'],
      hibernated: ['wake'],
      paused: ['resume'],
    }
    const verb = this.#pick(verbs[status] ?? [])
    assert.ok(verb, `${sandbox.id} is ${status}`)
    await this.#try(`${verb} ${sandbox.id}`, 'POST', `/sandboxes/${sandbox.id}/${verb}`)
  }

  async #deleteSandbox(sandbox: Known): Promise<void> {
    await this.#surely('DELETE', `/sandboxes/${sandbox.id}`)
    this.#sandboxes = this.#sandboxes.filter((one) => one !== sandbox)
  }

  async #deleteCheckpoint(): Promise<void> {
    const checkpoint = this.#pick(this.#checkpoints)
    if (!checkpoint) return
    this.#checkpoints = this.#checkpoints.filter((one) => one !== checkpoint)
    const path = `/sandboxes/${checkpoint.sandboxId}/checkpoints/${checkpoint.id}`
    await this.#surely('DELETE', path).catch(unless('checkpoint_not_found'))
  }

  async #deleteSnapshot(): Promise<void> {
    const snapshot = this.#pick(this.#snapshots)
    if (!snapshot) return
    this.#snapshots = this.#snapshots.filter((one) => one !== snapshot)
    await this.#surely('DELETE', `/snapshots/${snapshot.id}`).catch(unless('snapshot_not_found'))
  }

  async #verifyAndDeleteLast(): Promise<void> {
    const sandbox = this.#sandboxes.at(-1)!
    await this.#verify(sandbox)
    await this.#deleteSandbox(sandbox)
  }

  async #verify(sandbox: Known): Promise<void> {
    const { stdout } = await this.#exec(sandbox, READ)
    const { keys } = await this.#surely<{ keys: string[] }>('GET', `/sandboxes/${sandbox.id}/store`)
    const store: Record<string, string> = {}
    for (const key of keys) {
      const path = `/sandboxes/${sandbox.id}/store/${encodeURIComponent(key)}`
      store[key] = (await this.#surely<{ value: string }>('GET', path)).value
    }
    const found = JSON.stringify(readState(stdout, store))
    const fitting = sandbox.states.filter((state) => JSON.stringify(hashed(state)) === found)
    if (fitting.length === 0)
      assert.deepEqual(JSON.parse(found), sandbox.states.map(hashed), `sandbox ${sandbox.id}`)
    sandbox.states = [fitting[0]!]
  }

  async #exec(sandbox: Known, script: string, ...args: string[]): Promise<ExecResult> {
    const result = await this.#surely<ExecResult>('POST', `/sandboxes/${sandbox.id}/exec`, {
      command: ['sh', '-c', script, 'sh', ...args],
    })
    assert.equal(result.exitCode, 0, JSON.stringify(result))
    return result
  }

  async #explained(work: Promise<void>): Promise<void> {
    await work.catch((error) => {
      throw new Error(`${this.#name}: ${this.done.slice(-40).join('\n')}`, { cause: error })
    })
  }

  #apply(sandbox: Known, change: (state: State) => State): void {
    sandbox.states = sandbox.states.map(change)
  }

  /** Until it was done. */
  async #surely<T>(method: string, path: string, body?: unknown): Promise<T> {
    for (;;) {
      const result = await this.#try<T>(`${method} ${path}`, method, path, body)
      if (result !== LOST) return result
    }
  }

  async #try<T>(what: string, method: string, path: string, body?: unknown): Promise<T | typeof LOST> {
    this.done.push(what)
    try {
      return await call<T>(this.#world.server, method, path, body)
    } catch (error) {
      if (error instanceof Refused) throw error
      this.done.push('  (lost)')
      this.#world.signal.throwIfAborted()
      await this.#world.up()
      return LOST
    }
  }

  #tag(): string {
    return `${this.#name}-${this.#count++}`
  }

  #text(): string {
    const length = this.#random() < 0.1 ? 50_000 : 10
    return `${this.#name}.${this.#count++}.`.repeat(length).slice(0, length)
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)]
  }
}

function without<T>(from: Record<string, T>, isOut: (key: string) => boolean): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([key]) => !isOut(key)))
}

const sorted = <T>(record: Record<string, T>) =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

const hash = (text: string) => createHash('sha256').update(text).digest('hex')

/** With hashes in place of what files hold. */
function hashed({ files, store, env }: State): State {
  const hashes = Object.entries(files).map(([path, content]) => [path, hash(content)] as const)
  return { files: sorted(Object.fromEntries(hashes)), store: sorted(store), env }
}

/** Of what READ printed. */
function readState(stdout: string, store: State['store']): State {
  const lines = stdout.trimEnd().split('\n')
  const env = lines.pop()!
  const files = lines.map((line) => [line.slice(66 + './'.length), line.slice(0, 64)] as const)
  return { files: sorted(Object.fromEntries(files)), store: sorted(store), env }
}
