import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS, type TimeoutsInfo } from '@islet/contract'
import { type Db, openDb } from '../db/db.ts'
import { type SandboxRecord, SandboxTable } from '../db/sandboxes.ts'
import { Activity } from './activity.ts'
import { newRecord } from './record.ts'

const SHORT = 50
const LONG = 60_000
const WALL = { engine: 'process', isolation: 'none' } as const

let directory: string
let db: Db
let table: SandboxTable
let activity: Activity
let rung: string[]

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'islet-activity-'))
  db = openDb(directory)
  table = new SandboxTable(db)
  rung = []
  activity = server()
})
afterEach(() => {
  activity.close()
  db[Symbol.dispose]()
  rmSync(directory, { recursive: true })
})

test('an unused sandbox becomes idle after its timeout, the shortest timeout first', async () => {
  const [late, early] = [sandbox({ idleMs: SHORT * 6 }), sandbox({ idleMs: SHORT })]
  for (const id of [late, early]) activity.begin(id)
  await hears(`idle ${late}`)
  assert.deepEqual(rung, [`idle ${early}`, `idle ${late}`])
})

test('a sandbox is not idle until its last use is over', async () => {
  const [used, other] = [sandbox({ idleMs: SHORT }), sandbox({ idleMs: SHORT * 4 })]
  activity.begin(used)
  const leave = [activity.use(used), activity.use(used)]
  activity.begin(other)
  leave[0]!()
  leave[0]!()
  assert.ok(activity.isUsed(used))
  await hears(`idle ${other}`)
  assert.deepEqual(rung, [`idle ${other}`])
  leave[1]!()
  assert.ok(!activity.isUsed(used))
  await hears(`idle ${used}`)
})

test('after its timer fired, a use or a restart of the timer makes a sandbox not idle', async () => {
  const id = sandbox({ idleMs: SHORT })
  const isIdle = () => activity.isIdle(table.get(id)!)
  activity.begin(id)
  await hears(`idle ${id}`)
  assert.ok(isIdle())
  const leave = activity.use(id)
  await sleep(SHORT * 2)
  assert.ok(!isIdle())
  leave()
  change(id, { idleMs: LONG })
  activity.begin(id)
  assert.ok(!isIdle())
})

test('awake names each reason once, calls only without other reasons, or the time when it becomes idle', () => {
  const id = sandbox({ idleMs: LONG })
  activity.begin(id)
  const awake = () => activity.awake(table.get(id)!)
  const left = Date.parse(awake()!.sleepsAt!) - Date.now()
  assert.ok(left > LONG / 2 && left <= LONG, `${left}`)
  const call = activity.use(id)
  assert.deepEqual(awake(), { reasons: [{ kind: 'call' }], sleepsAt: null })
  assert.ok(activity.isUsed(id))
  const leave = ['prc-2', 'prc-1', 'prc-1'].map((one) => activity.use(id, { kind: 'job', id: one }))
  leave.push(activity.use(id, { kind: 'command', id: 'prc-3' }))
  const reasons = ['command prc-3', 'job prc-2', 'job prc-1']
  assert.deepEqual(
    awake()!.reasons.map(({ kind, id }) => `${kind} ${id}`),
    reasons,
  )
  call()
  // Jobs wait for nothing: a call during the suspension gets an error.
  assert.ok(!activity.isUsed(id))
  for (let n = 0; n < 100; n++) activity.use(id, { kind: 'session', id: String(n) })
  assert.equal(awake()!.reasons.length, LIMITS.awakeReasons)
  const still = sandbox({ idleMs: LONG }, { status: 'hibernated', suspendedAt: Date.now() })
  assert.equal(activity.awake(table.get(still)!), null)
})

test('keepAwake stops the timer and is named as a reason', async () => {
  const [kept, other] = [sandbox({ idleMs: SHORT }, { keepAwake: true }), sandbox({ idleMs: SHORT * 4 })]
  for (const id of [kept, other]) activity.begin(id)
  await hears(`idle ${other}`)
  assert.deepEqual(rung, [`idle ${other}`])
  assert.deepEqual(activity.awake(table.get(kept)!), { reasons: [{ kind: 'setting' }], sleepsAt: null })
  table.save({ ...table.get(kept)!, keepAwake: false })
  activity.begin(kept)
  await hears(`idle ${kept}`)
})

test('a held sandbox does not become idle, but its idle time goes on', async () => {
  const [held, other] = [sandbox({ idleMs: SHORT }), sandbox({ idleMs: SHORT * 4 })]
  activity.begin(held)
  const release = activity.hold(held)
  activity.begin(other)
  await hears(`idle ${other}`)
  assert.ok(!activity.isIdle(table.get(held)!))
  release()
  release()
  assert.ok(activity.isIdle(table.get(held)!))
  await hears(`idle ${held}`)
})

test('the timer does not fire with no timeout, or with the longest one', async () => {
  const [never, longest, other] = [0, LIMITS.lastingMs, SHORT * 4].map((idleMs) => sandbox({ idleMs }))
  for (const id of [never!, longest!, other!]) activity.begin(id)
  await hears(`idle ${other}`)
  assert.deepEqual(rung, [`idle ${other}`])
})

test('a changed timeout counts from the change, and 0 turns it off', async () => {
  const [sooner, never, other] = [
    sandbox({ idleMs: LONG }),
    sandbox({ idleMs: SHORT }),
    sandbox({ idleMs: SHORT * 4 }),
  ]
  for (const id of [sooner, never, other]) activity.begin(id)
  change(sooner, { idleMs: SHORT })
  change(never, { idleMs: 0 })
  for (const id of [sooner, never]) activity.begin(id)
  await hears(`idle ${other}`)
  assert.deepEqual(rung, [`idle ${sooner}`, `idle ${other}`])
})

test('a suspended sandbox is not idle; a paused one has its own timeout', async () => {
  const paused = sandbox(
    { idleMs: SHORT, pausedMs: SHORT * 4 },
    { status: 'paused', suspendedAt: Date.now() },
  )
  const forEver = sandbox({ idleMs: SHORT }, { status: 'paused', suspendedAt: Date.now() })
  const asleep = sandbox(
    { idleMs: SHORT, pausedMs: SHORT },
    { status: 'hibernated', suspendedAt: Date.now() },
  )
  for (const id of [forEver, asleep, paused]) activity.begin(id)
  await hears(`paused ${paused}`)
  assert.deepEqual(rung, [`paused ${paused}`])
})

test('a paused timeout that passed without a server is handled by the next server', async () => {
  const id = sandbox({ pausedMs: LONG }, { status: 'paused', suspendedAt: Date.now() - 2 * LONG })
  activity.goOn(table.get(id)!)
  await hears(`paused ${id}`)
})

test('after a restart of the server the idle time goes on, but leaves clients time to reconnect', async () => {
  const [before, never] = [sandbox({ idleMs: LONG }), sandbox({ idleMs: 0 })]
  for (const id of [before, never]) activity.begin(id)
  activity.close()
  db.run('UPDATE activity SET at = ? WHERE sandbox_id = ?', Date.now() - 2 * LONG, before)
  activity = server({ graceMs: SHORT })
  const fresh = sandbox({ idleMs: LONG })
  for (const id of [before, never, fresh]) activity.goOn(table.get(id)!)
  await hears(`idle ${before}`)
  assert.deepEqual(rung, [`idle ${before}`])
})

test('a last use in the future counts as now', async () => {
  const id = sandbox({ idleMs: SHORT })
  activity.begin(id)
  activity.close()
  db.run('UPDATE activity SET at = ? WHERE sandbox_id = ?', Date.now() + LONG, id)
  activity = server()
  activity.goOn(table.get(id)!)
  await hears(`idle ${id}`)
})

test('the timer is set again after an action that was not needed or failed', async () => {
  const id = sandbox({ idleMs: SHORT })
  activity.begin(id)
  await hears(`idle ${id}`)
  activity.use(id)()
  activity.again(id)
  await hears(`idle ${id}`, 2)
  activity.again(id, { failed: true })
  await hears(`idle ${id}`, 3)
})

test('no timer fires for a forgotten sandbox or after close, and ending a use late is fine', async () => {
  const [gone, other] = [sandbox({ idleMs: SHORT }), sandbox({ idleMs: SHORT * 4 })]
  const leave = activity.use(gone)
  for (const id of [gone, other]) activity.begin(id)
  activity.forget(gone)
  table.remove(gone)
  leave()
  await hears(`idle ${other}`)
  activity.again(other)
  activity.close()
  activity.use(other)()
  await sleep(SHORT * 8)
  assert.deepEqual(rung, [`idle ${other}`])
})

test('uses and timers work although nothing can be saved', async () => {
  const id = sandbox({ idleMs: SHORT })
  db.run('PRAGMA query_only = ON')
  const leave = activity.use(id)
  activity.begin(id)
  leave()
  await hears(`idle ${id}`)
})

function server(options: { graceMs?: number } = {}): Activity {
  return new Activity({
    db,
    record: (id) => table.get(id),
    onIdle: (id) => void rung.push(`idle ${id}`),
    onPausedTooLong: (id) => void rung.push(`paused ${id}`),
    retryMs: SHORT,
    ...options,
  })
}

function sandbox(timeouts: Partial<TimeoutsInfo>, more: Partial<SandboxRecord> = {}): string {
  const record = newRecord({}, { runtime: 'host', capabilities: WALL })
  table.save({ ...record, status: 'running', ...more, timeouts: { ...record.timeouts, ...timeouts } })
  return record.id
}

function change(id: string, timeouts: Partial<TimeoutsInfo>): void {
  const record = table.get(id)!
  table.save({ ...record, timeouts: { ...record.timeouts, ...timeouts } })
}

async function hears(what: string, times = 1): Promise<void> {
  const deadline = Date.now() + 30_000
  while (rung.filter((one) => one === what).length < times) {
    assert.ok(Date.now() < deadline, `${what} was not heard, but ${rung.join(', ')}`)
    await sleep(5)
  }
}
