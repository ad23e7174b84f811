// Sandboxes with known content, the calls that save and move them, and kills of the server at chosen steps of a call.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import type { CheckpointInfo, ErrorBody, Sandbox, ServiceInfo } from '@islet/contract'
import type { Islet } from 'islet'
import { until } from '../coming-from/until.ts'
import { slotOf } from '../support/leftovers.ts'
import { needs } from '../support/programs.ts'
import type { TestServer } from '../support/server.ts'
import { cellsOf, layersOf } from './state-audit.ts'

needs('pgrep')

/** An answer of the server that is an error. */
export class Refused extends Error {
  readonly code: string
  constructor({ error }: ErrorBody) {
    super(`${error.code}: ${error.message}`)
    this.code = error.code
  }
}

/** For a failure that is fine. */
export function unless(code: string) {
  return (error: unknown): undefined => {
    if ((error as { code?: string }).code !== code) throw error
  }
}

/** One attempt, never repeated: whether it was acknowledged is what matters. */
export async function call<T>(server: TestServer, method: string, path: string, body?: unknown): Promise<T> {
  const headers = body === undefined ? undefined : { 'Content-Type': 'application/json' }
  const answer = await server.fetch(`/v1${path}`, { method, headers, body: JSON.stringify(body) })
  const text = await answer.text()
  if (!answer.ok) throw new Refused(JSON.parse(text))
  return (text === '' ? undefined : JSON.parse(text)) as T
}

export const checkpoint = (server: TestServer, id: string, name: string) =>
  call<CheckpointInfo>(server, 'POST', `/sandboxes/${id}/checkpoints`, { name })

export const checkpoints = async (server: TestServer, id: string): Promise<CheckpointInfo[]> =>
  (await call<{ checkpoints: CheckpointInfo[] }>(server, 'GET', `/sandboxes/${id}/checkpoints`)).checkpoints

export const restore = (server: TestServer, id: string, checkpointId: string) =>
  call<{ sandbox: Sandbox }>(server, 'POST', `/sandboxes/${id}/checkpoints/${checkpointId}/restore`)

export const statusOf = async (server: TestServer, id: string): Promise<string> =>
  (await call<Sandbox>(server, 'GET', `/sandboxes/${id}`)).status

/** All kinds of things that a layer can hold, over an image that has some of them too. */
const FILL = `set -e; mkdir -p tree/a/b "tree/an empty one"; cd tree
  head -c 300000 /dev/urandom > a/random; echo text > a/b/text; chmod 4751 a/b/text; ln a/b/text a/linked
  ln -s ../nowhere a/dangling; mkfifo a/fifo; truncate -s 5M a/sparse; : > a/nothing; touch -d @1000000000 a/old
  rm -rf /etc/profile.d; mv /etc/skel /etc/moved || :`
const CHANGE = `set -e; cd tree; echo "$1" >> a/b/text; rm -f a/dangling; rm -rf c; mkdir c; head -c 10000 /dev/urandom > "c/$1"; mv a/random c/moved
  head -c 100000 /dev/urandom > a/random`
const LOOK = `cd /; set -- "$OLDPWD/tree" etc/profile.d etc/skel etc/moved; echo "$STATE"
  { find "$@" -type d -printf '%p d %m %U %G %T@\\n'; find "$@" ! -type d \\( -path 'etc/*' -printf '%p %y %m %U %G %s %T@ %l\\n' -o -printf '%p %y %m %U %G %n %s %T@ %l\\n' \\); } 2>/dev/null | sort
  find "$1" -type f -exec sha256sum {} + | sort`

/** Makes a sandbox with files, env and store. */
export async function fill(islet: Islet, seed: string): Promise<string> {
  const sandbox = await islet.sandboxes.create({ runtime: 'host', user: 'root', env: { STATE: seed } })
  const { exitCode, stderr } = await sandbox.exec.run(['sh', '-c', FILL])
  assert.equal(exitCode, 0, stderr)
  await sandbox.store.set('seed', { value: seed })
  await sandbox.service.start({ name: 'beat', start: 'echo begun; exec sleep 100000' })
  return sandbox.id
}

/** Whatever happened to the sandbox, its service is wanted and so it runs. */
export async function serves(server: TestServer, id: string): Promise<void> {
  const beat = () => call<ServiceInfo>(server, 'GET', `/sandboxes/${id}/services/beat`)
  await until(async () => (await beat()).status === 'running').catch(async (error) => {
    throw new Error(`${error.message}\n${JSON.stringify(await beat())}\n${server.output.slice(-3000)}`)
  })
  const { stdout } = await (await server.islet().sandboxes.connect(id)).exec.run('pgrep -fc "^sleep 100000"')
  assert.equal(stdout, '1\n', 'it runs once')
}

/** Everything in it that can be changed is another thing then. */
export async function change(islet: Islet, id: string, seed: string): Promise<void> {
  const sandbox = await islet.sandboxes.connect(id)
  const { exitCode, stderr } = await sandbox.exec.run(['sh', '-c', CHANGE, 'sh', seed])
  assert.equal(exitCode, 0, stderr)
  await sandbox.store.set('seed', { value: seed })
  await sandbox.store.set(seed, { value: true })
  await sandbox.update({ env: { STATE: seed } })
}

/** Files bit for bit with owners, modes and times, env, store. */
export async function look(islet: Islet, id: string): Promise<string> {
  const sandbox = await islet.sandboxes.connect(id)
  const { stdout, exitCode, stderr } = await sandbox.exec.run(['sh', '-c', LOOK])
  assert.equal(exitCode, 0, stderr)
  const { keys } = await sandbox.store.list()
  const values = await Promise.all(
    keys.map(async (key) => `${key}=${JSON.stringify(await sandbox.store.get(key))}`),
  )
  return `${stdout}${values.join('\n')}`
}

/** Some of what a call has begun is done after its answer. */
const AFTER_ANSWER_MS = 3000

/** The state that is visible from outside during a call. */
export interface Outside {
  layers: string[]
  cells: string[]
  /** Whether any sandbox is frozen. */
  frozen: boolean
  /** The call has answered. */
  answered: boolean
  elapsedMs: number
}

/** True at the step to kill at. */
export type Step = (now: Outside, before: Outside) => boolean

/**
 * Starts the call, kills the server as soon as the step is seen, starts it again. Answers with what the call answered, if it did
 * before the crash. A step that is never seen fails, for then it was not tried; one that lasts only milliseconds may be missed.
 */
export async function crashAt<T>(
  server: TestServer,
  step: Step,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const slot = slotOf(server.dataDir)!
  const before = outside(server, slot)
  let outcome: { value: T } | { error: unknown } | undefined
  const began = performance.now()
  const working = work().then(
    (value) => {
      outcome = { value }
    },
    (error) => {
      outcome = { error }
    },
  )
  let wasSeen = false
  let answeredAt: number | undefined
  while (!wasSeen && performance.now() - began < 20_000) {
    await new Promise(setImmediate)
    const now = {
      ...outside(server, slot),
      answered: outcome !== undefined,
      elapsedMs: performance.now() - began,
    }
    wasSeen = step(now, before)
    answeredAt ??= outcome && performance.now()
    if (answeredAt !== undefined && performance.now() - answeredAt > AFTER_ANSWER_MS) break
  }
  process.kill(server.pid, 'SIGKILL')
  await server.ended()
  await working
  await server.start()
  assert.ok(wasSeen || isFleeting(step), `the step was not seen: ${JSON.stringify(outcome)}`)
  return outcome && 'value' in outcome ? outcome.value : undefined
}

function outside(server: TestServer, slot: string): Outside {
  return {
    layers: layersOf(server),
    cells: cellsOf(slot),
    frozen: isFrozen(slot),
    answered: false,
    elapsedMs: 0,
  }
}

function isFrozen(slot: string): boolean {
  const v1 = globSync(`/sys/fs/cgroup/freezer/islet${slot}/cel-*/freezer.state`)
  const files = v1.length > 0 ? v1 : globSync(`/sys/fs/cgroup/islet${slot}/cel-*/cgroup.freeze`)
  return files.some((file) => /FROZEN|FREEZING|^1/.test(text(file)))
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const isNew = (now: string[], before: string[]) => now.filter((name) => !before.includes(name)).length

/** Steps, in words. */
export const at = {
  once: (): boolean => true,
  frozen: ({ frozen }: Outside) => frozen,
  /** So many more layers, whole ones. */
  layers:
    (count: number): Step =>
    (now, before) =>
      isNew(now.layers.filter(isWhole), before.layers) >= count,
  halfLayer: (now: Outside) => now.layers.some((name) => !isWhole(name)),
  layerGone: (now: Outside, before: Outside) => before.layers.some((name) => !now.layers.includes(name)),
  cells:
    (count: number): Step =>
    (now, before) =>
      isNew(now.cells, before.cells) >= count,
  cellGone: (now: Outside, before: Outside) => before.cells.some((name) => !now.cells.includes(name)),
  answered: ({ answered }: Outside) => answered,
  after:
    (ms: number): Step =>
    ({ elapsedMs }) =>
      elapsedMs >= ms,
}

/** The step after another: when that was seen and is over. */
export function afterwards(step: Step): Step {
  let wasSeen = false
  const after: Step = (now, before) => {
    if (step(now, before)) {
      wasSeen = true
      return false
    }
    return wasSeen
  }
  fleeting.add(after)
  return after
}

const fleeting = new WeakSet<Step>([at.frozen, at.halfLayer])
const isFleeting = (step: Step): boolean => fleeting.has(step)

function isWhole(layer: string): boolean {
  return !layer.startsWith('.')
}
