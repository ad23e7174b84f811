// Sandboxes made, put to sleep, woken and removed.
import assert from 'node:assert/strict'
import type { Sandbox } from '@islet/contract'
import type { Client } from './client.ts'
import { assertToldOfEnd } from './events.ts'
import { type Known, newKnown, type State } from './model.ts'
import { FULL, LOST } from './world.ts'

/** The limit of each client. */
export const MAX_SANDBOXES = 3

const VERBS: Partial<Record<string, string[]>> = {
  running: ['hibernate', 'pause'],
  hibernated: ['wake'],
  paused: ['resume'],
}

export async function create(client: Client): Promise<void> {
  const env = client.text()
  // Some go to sleep by themselves when the clock jumps; whatever is asked of them wakes them.
  const idle = client.random.chance(0.2) ? '30m' : 0
  const body = { runtime: 'host', env: { MODEL: env }, timeout: { idle } }
  await makeFrom(client, '/sandboxes', body, [{ files: {}, store: {}, env, service: undefined }])
}

export async function createFromCheckpoint(client: Client): Promise<void> {
  const from = client.random.pick(client.checkpoints)
  if (from) await makeFrom(client, `/checkpoints/${from.id}/sandboxes`, {}, from.states)
}

export async function createFromSnapshot(client: Client): Promise<void> {
  const from = client.random.pick(client.snapshots)
  if (from) await makeFrom(client, '/sandboxes', { snapshot: from.id }, from.states)
}

/** With a key the call is repeated, and makes one sandbox however often; without, what it made is looked for. */
export async function makeFrom(client: Client, path: string, body: object, states: State[]): Promise<void> {
  const tag = client.tag()
  const tagged = { ...body, metadata: { tag } }
  if (client.random.chance(0.5)) {
    const headers = { 'Idempotency-Key': `${tag}-${client.world.tally.steps}` }
    const made = await client.surely<Sandbox>('create with a key', undefined, 'POST', path, tagged, {
      headers,
    })
    assert.deepEqual(await withTag(client, tag), [made.id], 'one sandbox is made')
    return client.know(newKnown(made.id, states))
  }
  const made = await client.try<Sandbox>('create', undefined, 'POST', path, tagged)
  if (made === LOST) await adopt(client, tag, states)
  else if (made !== FULL) client.know(newKnown(made.id, states))
}

/** The sandboxes with this tag that a call made before a crash cut it off. */
export async function adopt(client: Client, tag: string, states: State[]): Promise<void> {
  for (const id of await withTag(client, tag)) client.know(newKnown(id, states))
}

async function withTag(client: Client, tag: string): Promise<string[]> {
  const path = `/sandboxes?metadata=${encodeURIComponent(`tag=${tag}`)}`
  const { sandboxes } = await client.surely<{ sandboxes: Sandbox[] }>('list', undefined, 'GET', path)
  return sandboxes.map(({ id }) => id)
}

/** To another state of its life; using it brings it back. */
export async function move(client: Client, sandbox: Known): Promise<void> {
  const path = `/sandboxes/${sandbox.id}`
  const { status } = await client.surely<Sandbox>('get', undefined, 'GET', path)
  if (status === 'failed' && sandbox.wound !== undefined) return client.heal(sandbox)
  const verb = client.random.pick(VERBS[status] ?? [])
  assert.ok(verb, `${sandbox.id} is ${status}`)
  await client.try(verb, sandbox, 'POST', `${path}/${verb}`)
}

export async function deleteSandbox(client: Client, sandbox: Known): Promise<void> {
  client.world.sandboxes.delete(sandbox)
  const path = `/sandboxes/${sandbox.id}`
  await client.surely('delete', undefined, 'DELETE', path)
  client.sandboxes = client.sandboxes.filter((one) => one !== sandbox)
  const { status } = await client.surely<Sandbox>('get', undefined, 'GET', path)
  assert.equal(status, 'stopped')
  await assertToldOfEnd(client, sandbox)
}
