// The history of a sandbox only grows: what was read once is there again, in the same order, and nothing comes before it later.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventPage, SandboxEvent } from '@islet/contract'
import type { Client } from './client.ts'
import type { Known } from './model.ts'

const PAGE = 1000
/** Beyond that the oldest are forgotten. */
const KEPT = 9000
const TOLD_BY_MS = 120_000

export async function readEvents(client: Client, sandbox: Known): Promise<SandboxEvent[]> {
  const events: SandboxEvent[] = []
  for (let since = '0', more = true; more; since = events.at(-1)?.id ?? since) {
    const path = `/sandboxes/${sandbox.id}/events?direction=asc&limit=${PAGE}&since=${since}`
    const page = await client.surely<EventPage>('read events', undefined, 'GET', path)
    events.push(...page.events)
    more = page.more
  }
  if (events.length > KEPT) return events
  const ids = events.map(({ id }) => id)
  assert.deepEqual(ids.slice(0, sandbox.events.length), sandbox.events, `events of ${sandbox.id}`)
  sandbox.events = ids
  const found = new Map<string, number>()
  for (const { type, data } of events) {
    const name = `${type} ${(data as { id?: string }).id}`
    found.set(name, (found.get(name) ?? 0) + 1)
  }
  for (const name of sandbox.expected) assert.equal(found.get(name), 1, `${name} of ${sandbox.id}`)
  return events
}

/** Exactly one event says that the sandbox is gone, and a follower of its history got every event. */
export async function assertToldOfEnd(client: Client, sandbox: Known): Promise<void> {
  const follower = sandbox.follower
  if (follower) {
    const late = sleep(TOLD_BY_MS, undefined, { ref: false }).then(() => {
      throw new Error(`The events of ${sandbox.id}, which is gone, do not end`)
    })
    await Promise.race([follower.over, late])
  }
  const events = await readEvents(client, sandbox)
  const ends = events.filter(({ type }) => type === 'stopped')
  assert.equal(ends.length, 1, `${sandbox.id} stopped once`)
  if (follower && events.length <= KEPT)
    assert.deepEqual(follower.ids, sandbox.events.slice(0, follower.ids.length), `followed ${sandbox.id}`)
  if (follower) assert.ok(follower.ids.includes(ends[0]!.id), `the end of ${sandbox.id} was told`)
}
