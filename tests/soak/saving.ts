// Checkpoints, snapshots and forks: sandboxes made from them have the state that was saved.
import type { CheckpointInfo, Forks, SnapshotInfo } from '@islet/contract'
import { Refused, unless } from '../faults/state-world.ts'
import type { Client } from './client.ts'
import { writeByCommand } from './files.ts'
import { adopt, MAX_SANDBOXES } from './life.ts'
import { type Known, newKnown } from './model.ts'
import { setStore } from './records.ts'
import { FULL, LOST } from './world.ts'

const MAX_SAVED = 4

export async function checkpoint(client: Client, sandbox: Known): Promise<void> {
  if (client.checkpoints.length >= MAX_SAVED) await deleteCheckpoint(client)
  const name = client.tag()
  const path = `/sandboxes/${sandbox.id}/checkpoints`
  const { states } = sandbox
  const made = await client.try<CheckpointInfo>('checkpoint', sandbox, 'POST', path, { name })
  const found = made === LOST ? await findCheckpoint(client, path, name) : made
  if (!found || found === FULL) return
  client.checkpoints.push({ id: found.id, sandboxId: sandbox.id, states })
  sandbox.expected.add(`checkpoint.created ${found.id}`)
}

async function findCheckpoint(
  client: Client,
  path: string,
  name: string,
): Promise<CheckpointInfo | undefined> {
  const { checkpoints } = await client.surely<{ checkpoints: CheckpointInfo[] }>(
    'list checkpoints',
    undefined,
    'GET',
    path,
  )
  return checkpoints.find((each) => each.name === name)
}

/** The checkpoint has what was written at the same time, or not. */
export async function checkpointWhileWriting(client: Client, sandbox: Known): Promise<void> {
  const { states: before, heals } = sandbox
  const write = client.random.chance(0.5) ? writeByCommand : setStore
  const works = client.random.chance(0.5) ? [checkpoint, write] : [write, checkpoint]
  const known = new Set(client.checkpoints)
  await Promise.all(works.map((work) => work(client, sandbox)))
  const either = [...before, ...sandbox.states]
  for (const made of client.checkpoints) if (!known.has(made)) made.states = either
  // It was taken back to a checkpoint that was made before or after the write.
  if (sandbox.heals > heals) sandbox.states = either
}

export async function restore(client: Client, sandbox: Known): Promise<void> {
  const saved = client.random.pick(client.checkpoints.filter(({ sandboxId }) => sandboxId === sandbox.id))
  if (!saved) return
  sandbox.losses++
  const path = `/sandboxes/${sandbox.id}/checkpoints/${saved.id}/restore`
  const restored = await client.try('restore', sandbox, 'POST', path)
  if (restored === FULL) return
  sandbox.states = restored === LOST ? [...sandbox.states, ...saved.states] : saved.states
}

export async function fork(client: Client, sandbox: Known): Promise<void> {
  const room = MAX_SANDBOXES - client.sandboxes.length
  const count = Math.min(1 + Math.floor(client.random.next() * 3), room)
  if (count < 1) return
  const tag = client.tag()
  const { states } = sandbox
  const since = Date.now()
  const body = { count, metadata: { tag } }
  const answer = await client.try<Forks>('fork', sandbox, 'POST', `/sandboxes/${sandbox.id}/fork`, body)
  if (answer === LOST) return adopt(client, tag, states)
  if (answer === FULL) return
  for (const made of answer.forks) {
    if (made.ok) client.know(newKnown(made.sandbox.id, states))
    else if (client.world.excuse(made.error.code, since) === undefined) throw new Refused(made as never)
  }
}

export async function snapshot(client: Client, sandbox: Known): Promise<void> {
  if (client.snapshots.length >= MAX_SAVED) await deleteSnapshot(client)
  const name = client.tag()
  const saved = client.random.chance(0.5) ? client.random.pick(client.checkpoints) : undefined
  const of = saved ? { checkpoint: saved.id } : { sandbox: sandbox.id }
  const { states } = saved ?? sandbox
  const body = { ...of, name, tag: `latest-${client.name}` }
  const made = await client.try<SnapshotInfo>('snapshot', sandbox, 'POST', '/snapshots', body)
  if (made === FULL) return
  if (made !== LOST) return void client.snapshots.push({ id: made.id, states })
  const { snapshots } = await client.surely<{ snapshots: SnapshotInfo[] }>(
    'list snapshots',
    undefined,
    'GET',
    `/snapshots?name=${name}`,
  )
  for (const { id } of snapshots) client.snapshots.push({ id, states })
}

export async function deleteCheckpoint(client: Client): Promise<void> {
  const saved = client.random.pick(client.checkpoints)
  if (!saved) return
  client.checkpoints = client.checkpoints.filter((one) => one !== saved)
  const path = `/sandboxes/${saved.sandboxId}/checkpoints/${saved.id}`
  await client.surely('delete a checkpoint', undefined, 'DELETE', path).catch(unless('checkpoint_not_found'))
}

export async function deleteSnapshot(client: Client): Promise<void> {
  const saved = client.random.pick(client.snapshots)
  if (!saved) return
  client.snapshots = client.snapshots.filter((one) => one !== saved)
  await client
    .surely('delete a snapshot', undefined, 'DELETE', `/snapshots/${saved.id}`)
    .catch(unless('snapshot_not_found'))
}
