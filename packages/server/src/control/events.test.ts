import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { LIMITS, type SandboxEvent } from '@islet/contract'
import { type Db, openDb } from '../db/db.ts'
import { Events } from './events.ts'

const SANDBOX = 'sbx-aaaaaaaaaaaaaaaaaaaa'
const OTHER = 'sbx-bbbbbbbbbbbbbbbbbbbb'
let dataDir: string
let db: Db
let events: Events

before(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'islet-events-'))
  db = openDb(dataDir)
  // Only the history matters here, not whose it is.
  db.run('PRAGMA foreign_keys = OFF')
  events = new Events(db)
})
after(() => {
  db[Symbol.dispose]()
  rmSync(dataDir, { recursive: true })
})

const count = (id: string) =>
  db.get<{ n: number }>('SELECT count(*) AS n FROM events WHERE sandbox_id = ?', id)!.n
const follow = (id: string, signal: AbortSignal, query = {}) =>
  events.follow(id, query, { signal, isOver: async () => false, beatMs: 3_600_000 })

test('the newest events are kept up to the limit, also across short-lived servers', () => {
  db.transaction(() => {
    for (let index = 0; index < LIMITS.events + 1000; index++) events.add(SANDBOX, 'resumed', { index })
    events.add(OTHER, 'created')
  })
  assert.ok(count(SANDBOX) >= LIMITS.events && count(SANDBOX) < LIMITS.events + 256, `${count(SANDBOX)}`)
  const [newest] = events.list(SANDBOX, { limit: 1 }).events
  assert.deepEqual(newest!.data, { index: LIMITS.events + 999 })
  for (let restart = 0; restart < 300; restart++) new Events(db).add(SANDBOX, 'resumed', { restart })
  assert.equal(count(SANDBOX), LIMITS.events)
  assert.equal(count(OTHER), 1, 'those of others stay')
})

test('a slow follower reads on where it was, and nothing is held in memory for it', async () => {
  const controller = new AbortController()
  const id = 'sbx-cccccccccccccccccccc'
  const slow = follow(id, controller.signal)
  events.add(id, 'created')
  assert.equal((await slow.next()).value!.type, 'created')
  db.transaction(() => {
    for (let index = 0; index < 1000; index++) events.add(id, 'resumed', { index })
  })
  const seen: unknown[] = []
  for (let index = 0; index < 1000; index++) seen.push(((await slow.next()).value as SandboxEvent).data.index)
  assert.deepEqual(
    seen,
    Array.from({ length: 1000 }, (_, index) => index),
  )
  controller.abort()
  assert.equal((await slow.next()).done, true)
})

test('an event that is rolled back reaches no follower', async () => {
  const controller = new AbortController()
  const id = 'sbx-dddddddddddddddddddd'
  const told = follow(id, controller.signal)
  const first = told.next()
  assert.throws(() =>
    db.transaction(() => {
      events.add(id, 'failed')
      throw new Error('undone')
    }),
  )
  events.add(id, 'created')
  assert.equal((await first).value!.type, 'created')
  controller.abort()
})

test('a waiting follower gets a heartbeat, and ends when it is aborted', async () => {
  const controller = new AbortController()
  const quiet = events.follow(
    OTHER,
    { since: '999999999' },
    {
      signal: controller.signal,
      isOver: async () => false,
      beatMs: 1,
    },
  )
  assert.deepEqual(await quiet.next(), { done: false, value: undefined })
  assert.deepEqual(await quiet.next(), { done: false, value: undefined })
  const waiting = follow(OTHER, controller.signal, { since: '999999999' }).next()
  controller.abort()
  assert.equal((await quiet.next()).done, true)
  assert.equal((await waiting).done, true)
})

test('followers are bounded, and one that never read ends with its client', () => {
  const controllers = Array.from({ length: LIMITS.eventListeners }, () => new AbortController())
  for (const { signal } of controllers) follow(OTHER, signal)
  const { signal } = new AbortController()
  assert.throws(() => follow(OTHER, signal), { code: 'limit_exceeded' })
  controllers[0]!.abort()
  const last = new AbortController()
  follow(OTHER, last.signal)
  assert.throws(() => follow(OTHER, signal), { code: 'limit_exceeded' })
  for (const controller of [...controllers, last]) controller.abort()
  assert.doesNotThrow(() => follow(OTHER, AbortSignal.abort()))
})
