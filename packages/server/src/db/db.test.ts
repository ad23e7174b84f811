import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId } from '@islet/contract'
import { openDb } from './db.ts'
import { IdempotencyTable } from './idempotency.ts'
import { ProcessTable } from './processes.ts'
import { SandboxTable } from './sandboxes.ts'
import { SavedTable } from './saved-states.ts'
import { StoreTable } from './store.ts'
import { record, temporary } from './testing.ts'

test('records outlive the database object, and its files are closed to others', () => {
  const directory = temporary()
  const saved = record({ name: 'it', env: { A: 'ü\n"' }, metadata: { a: [1, { b: null }] } })
  {
    using db = openDb(directory)
    new SandboxTable(db).save(saved)
  }
  using db = openDb(directory)
  assert.deepEqual(new SandboxTable(db).get(saved.id), saved)
  new SandboxTable(db).save({ ...saved, name: 'again' })
  for (const file of ['islet.db', 'islet.db-wal'])
    assert.equal(statSync(join(directory, file)).mode & 0o777, 0o600, file)
})

test('a second server on the same data directory is refused', () => {
  const directory = temporary()
  using _first = openDb(directory)
  assert.throws(() => openDb(directory), { code: 'conflict' })
})

test('a database from a newer version is refused and left alone', () => {
  const directory = temporary()
  {
    using db = openDb(directory)
    db.run('PRAGMA user_version = 999')
  }
  assert.throws(() => openDb(directory), { code: 'not_supported' })
})

test('a transaction that throws changes nothing', () => {
  using db = openDb(temporary())
  const table = new SandboxTable(db)
  assert.throws(() =>
    db.transaction(() => {
      table.save(record())
      throw new Error('no')
    }),
  )
  assert.equal(table.countLive(), 0)
})

test('keys of a saved state are removed in parts, with values that no sandbox has', () => {
  using db = openDb(temporary())
  const { id, root } = record()
  new SandboxTable(db).save({ ...record(), id })
  const store = new StoreTable(db)
  for (const key of ['a', 'b', 'c']) store.set(id, key, { value: `"${key}"`, expiresAt: null })
  const table = new SavedTable(db)
  const state = { ...record(), root }
  const rest = { services: [], patchRuns: [], memory: false, frozenMs: 0, sizeBytes: null, createdAt: 0 }
  table.save({ id: 'sav-1', sandboxId: id, status: 'ready', state, ...rest })
  table.copyStoreFrom('sav-1', id, 1)
  store.remove(id, 'a')
  table.doom('sav-1')
  assert.equal(table.get('sav-1')?.status, 'making')
  assert.deepEqual(
    [2, 2, 2].map((limit) => table.removeSome('sav-1', limit)),
    [2, 1, 0],
  )
  assert.equal(db.get<{ n: number }>('SELECT count(*) AS n FROM store_values')?.n, 2)
  assert.equal(store.get(id, 'c')?.value, '"c"')
})

test('old stopped sandboxes are removed, others never', () => {
  using db = openDb(temporary())
  const table = new SandboxTable(db)
  for (let stoppedAt = 1; stoppedAt <= 10; stoppedAt++) table.save(record({ status: 'stopped', stoppedAt }))
  for (let index = 0; index < 5; index++) table.save(record({ status: 'failed' }))
  for (const id of table.old(3)) table.remove(id)
  assert.deepEqual(
    table
      .list({ status: 'stopped' })
      .records.map(({ stoppedAt }) => stoppedAt)
      .sort(),
    [10, 8, 9],
  )
  assert.equal(table.list({ status: 'failed' }).total, 5)
})

test('a process is kept from its start to its end, old ones can be found, and they go with their sandbox', () => {
  using db = openDb(temporary())
  const sandboxes = new SandboxTable(db)
  const processes = new ProcessTable(db)
  const sandbox = record()
  sandboxes.save(sandbox)
  const ids = Array.from({ length: 10 }, () => newId('process'))
  for (const [index, id] of ids.entries()) {
    processes.insert({
      id,
      sandboxId: sandbox.id,
      command: ['true'],
      status: 'running',
      outcome: null,
      reason: null,
      pid: null,
      cwd: '/',
      user: 'user',
      terminal: false,
      terminalId: null,
      service: null,
      cancelSignals: 0,
      maxRunAfterDisconnectMs: null,
      foreground: false,
      keepAwake: false,
      startedAt: index,
      endedAt: null,
      outputBytes: 0,
      keepOutputBytes: 1024,
      result: null,
    })
  }
  const result = { exitCode: 3, signal: null, timedOut: false, oom: false, durationMs: 1 }
  const exited = { status: 'exited', outcome: 'failed', reason: null, pid: 7, endedAt: 99, result } as const
  for (const id of ids.slice(0, 8)) processes.ended(id, { ...exited, outputBytes: id === ids[2] ? 0 : 5 })
  const lost = { ...exited, status: 'lost', pid: 8, outputBytes: 0, result: null } as const
  assert.equal(processes.ended(ids[0]!, lost), false, 'it has ended already')
  assert.equal(processes.get(sandbox.id, ids[0]!)!.pid, 7)
  assert.deepEqual(processes.get(sandbox.id, ids[0]!)!.result, result)
  assert.equal(processes.get('sbx-other', ids[0]!), undefined)
  assert.deepEqual(
    processes.running(sandbox.id).map(({ id }) => id),
    [ids[9], ids[8]],
  )
  assert.deepEqual(processes.removeOld(sandbox.id, 5), [ids[1], ids[0]])
  assert.deepEqual(
    processes.list(sandbox.id, { limit: 100 }).map(({ id }) => id),
    ids.slice(3).reverse(),
  )
  assert.deepEqual(processes.removeOld(sandbox.id, 5), [])
  sandboxes.remove(sandbox.id)
  assert.equal(processes.get(sandbox.id, ids[3]!), undefined)
})

test('an idempotency key is found with its fingerprint until its sandbox is removed', () => {
  using db = openDb(temporary())
  const sandboxes = new SandboxTable(db)
  const table = new IdempotencyTable(db)
  const sandbox = record()
  sandboxes.save(sandbox)
  table.save('k', 'f', sandbox.id)
  assert.deepEqual({ ...table.find('k') }, { fingerprint: 'f', sandboxId: sandbox.id })
  assert.equal(table.find('other'), undefined)
  sandboxes.remove(sandbox.id)
  assert.equal(table.find('k'), undefined)
})

test('a queued write comes before all later reads and writes', async () => {
  using db = openDb(temporary())
  const table = new SandboxTable(db)
  const [a, b, c] = [record(), record(), record()]
  const kept = [db.beforeNext(() => table.save(a)), db.later(() => table.save(b))]
  assert.deepEqual(table.get(b.id), b)
  await Promise.all(kept)
  const order: string[] = []
  const first = db.beforeNext(() => void order.push('first'))
  db.transaction(() => order.push('second'))
  await first
  assert.deepEqual(order, ['first', 'second'])
  void db.later(() => table.save(c))
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.equal(table.live().length, 3)
})

test('a queued write that fails does not fail others', async () => {
  using db = openDb(temporary())
  const table = new SandboxTable(db)
  const [a, b] = [record(), record()]
  const fail = () => {
    throw new Error('no')
  }
  const kept = [db.later(() => table.save(a)), db.later(fail), db.later(() => table.save(b))]
  const outcomes = Promise.allSettled(kept)
  assert.equal(
    db.transaction(() => 'done'),
    'done',
  )
  assert.deepEqual(
    (await outcomes).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual([table.get(a.id), table.get(b.id)], [a, b])
  const late = record()
  const waiting = db.beforeNext(() => table.save(late))
  assert.throws(() => db.transaction(fail), /no/)
  await waiting
  assert.deepEqual(table.get(late.id), late)
})

test('closing the database flushes queued writes', () => {
  const directory = temporary()
  const saved = record()
  {
    using db = openDb(directory)
    void db.beforeNext(() => new SandboxTable(db).save(saved))
  }
  using db = openDb(directory)
  assert.deepEqual(new SandboxTable(db).get(saved.id), saved)
})

test('a record that is removed before it was written is not cached', async () => {
  const db = openDb(temporary())
  const table = new SandboxTable(db)
  const [a, b] = [record(), record()]
  const kept = [db.beforeNext(() => table.save(a)), db.beforeNext(() => table.save(b))]
  db.transaction(() => table.remove(a.id))
  table.save({ ...b, status: 'stopped', stoppedAt: 2 })
  await Promise.all(kept)
  assert.equal(table.get(a.id), undefined)
  assert.equal(table.get(b.id)?.status, 'stopped')
  db[Symbol.dispose]()
  await assert.rejects(
    db.later(() => table.save(a)),
    /closed/,
  )
})

test('a record that was rolled back is not cached', () => {
  using db = openDb(temporary())
  const table = new SandboxTable(db)
  const saved = record()
  table.save(saved)
  assert.throws(() =>
    db.transaction(() => {
      table.save({ ...saved, name: 'other' })
      throw new Error('no')
    }),
  )
  assert.equal(table.get(saved.id)?.name, null)
  table.save({ ...saved, name: 'third' })
  assert.equal(table.get(saved.id)?.name, 'third')
})
