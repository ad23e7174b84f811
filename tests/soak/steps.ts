// Chooses the next step of a client, and checks all its sandboxes at the end.
import assert from 'node:assert/strict'
import type { Client } from './client.ts'
import { readEvents } from './events.ts'
import { download, removeFile, upload, writeByCommand } from './files.ts'
import { checkJob, finishJobs, startJob } from './jobs.ts'
import {
  create,
  createFromCheckpoint,
  createFromSnapshot,
  deleteSandbox,
  MAX_SANDBOXES,
  makeFrom,
  move,
} from './life.ts'
import { type Found, fits, type Known } from './model.ts'
import { assertServes, changeService, readStore, serviceOf, setEnv, setStore } from './records.ts'
import {
  checkpoint,
  checkpointWhileWriting,
  deleteCheckpoint,
  deleteSnapshot,
  fork,
  restore,
  snapshot,
} from './saving.ts'

type Step = (client: Client, sandbox: Known) => Promise<unknown>

const STEPS: readonly (readonly [weight: number, step: Step])[] = [
  [4, writeByCommand],
  [5, upload],
  [3, download],
  [2, removeFile],
  [4, setStore],
  [1, setEnv],
  [2, changeService],
  [4, startJob],
  [4, checkJob],
  [4, checkpoint],
  [2, checkpointWhileWriting],
  [4, restore],
  [3, fork],
  [2, snapshot],
  [3, move],
  [2, readEvents],
  [2, deleteCheckpoint],
  [1, deleteSnapshot],
  [2, deleteSandbox],
  [4, verify],
]
const MAKING: readonly (readonly [weight: number, step: (client: Client) => Promise<void>])[] = [
  [2, create],
  [2, createFromCheckpoint],
  [1, createFromSnapshot],
]
/** The share of creates in the steps of a client that may have more sandboxes. */
const MAKES = 0.1
/** A checkpoint may have been made between the two steps of a write. */
const READ = 'mkdir -p ~/m && cd ~/m && find . -type f ! -name "*.tmp" -exec sha256sum {} +; echo "$MODEL"'

export async function step(client: Client): Promise<void> {
  const { random } = client
  const sandbox = random.pick(client.sandboxes)
  if (!sandbox) return create(client)
  if (client.sandboxes.length < MAX_SANDBOXES && random.chance(MAKES)) return random.weighted(MAKING)(client)
  await random.weighted(STEPS)(client, sandbox)
}

/** Everything is as it must be, also what was saved. */
export async function finish(client: Client): Promise<void> {
  for (const sandbox of [...client.sandboxes]) {
    await verify(client, sandbox)
    await finishJobs(client, sandbox)
    await readEvents(client, sandbox)
  }
  for (const { id, states } of client.checkpoints) {
    await makeFrom(client, `/checkpoints/${id}/sandboxes`, {}, states)
    await verifyAndDeleteLast(client)
  }
  for (const { id, states } of client.snapshots) {
    await makeFrom(client, '/sandboxes', { snapshot: id }, states)
    await verifyAndDeleteLast(client)
  }
}

export async function clear(client: Client): Promise<void> {
  for (const sandbox of [...client.sandboxes]) await deleteSandbox(client, sandbox)
  while (client.checkpoints.length > 0) await deleteCheckpoint(client)
  while (client.snapshots.length > 0) await deleteSnapshot(client)
}

async function verifyAndDeleteLast(client: Client): Promise<void> {
  const sandbox = client.sandboxes.at(-1)!
  await verify(client, sandbox)
  await deleteSandbox(client, sandbox)
}

async function verify(client: Client, sandbox: Known): Promise<void> {
  const from = Date.now()
  const { stdout } = await client.exec('exec', sandbox, READ)
  const lines = stdout.trimEnd().split('\n')
  const env = lines.pop()!
  const files = Object.fromEntries(lines.map((line) => [line.slice(66 + './'.length), line.slice(0, 64)]))
  const [store, service] = [await readStore(client, sandbox), await serviceOf(client, sandbox)]
  const found: Found = { files, store, env, service }
  const fitting = sandbox.states.filter((state) => fits(state, found, client.world.clock, from))
  if (fitting.length === 0) assert.deepEqual(found, sandbox.states, `sandbox ${sandbox.id}`)
  assert.ok(fitting.length > 0, `sandbox ${sandbox.id}`)
  sandbox.states = [...new Map(fitting.map((state) => [JSON.stringify(state), state])).values()]
  if (service !== undefined) await assertServes(client, sandbox)
}
