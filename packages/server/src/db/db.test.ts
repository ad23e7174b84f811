import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { type ListSandboxesParsed, newId, type SandboxStatus } from '@islet/contract'
import { openDb } from './db.ts'
import { IdempotencyTable } from './idempotency.ts'
import { MIGRATIONS } from './migrations.ts'
import { ProcessTable } from './processes.ts'
import { type SandboxRecord, SandboxTable } from './sandboxes.ts'
import { SavedTable } from './saved-states.ts'
import { StoreTable } from './store.ts'

const directories: string[] = []
after(() => {
  for (const directory of directories) rmSync(directory, { recursive: true })
})
const temporary = () => {
  directories.push(mkdtempSync(join(tmpdir(), 'islet-db-')))
  return directories.at(-1)!
}

function record(change: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id: newId('sandbox'),
    name: null,
    description: null,
    project: null,
    status: 'running' as SandboxStatus,
    reason: null,
    runtime: 'base',
    image: 'img-1',
    engine: 'oci',
    isolation: 'namespace',
    metadata: {},
    env: {},
    resources: { memoryBytes: 1, cpuMillis: 2, diskBytes: 3, pids: 4 },
    networkDue: false,
    network: { enabled: false, port: null },
    user: 'user',
    workdir: '/home/user',
    keepAwake: false,
    storeAccess: false,
    timeouts: { idleMs: 0, executionMs: 0, pausedMs: 0, onIdle: 'hibernate' },
    suspendedAt: null,
    origin: null,
    baseSnapshot: null,
    patchesOf: null,
    memory: null,
    root: { layer: 'lyr-1', trees: [] },
    cell: 'cel-1',
    createdAt: 1,
    updatedAt: 1,
    stoppedAt: null,
    ...change,
  }
}

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

test('the store of an older version keeps its keys, values and sizes', () => {
  const directory = temporary()
  const { id } = record()
  {
    using sqlite = new DatabaseSync(join(directory, 'islet.db'))
    for (const step of MIGRATIONS.slice(0, 2)) sqlite.exec(step)
    sqlite.exec(`PRAGMA user_version = 2;
      INSERT INTO sandboxes (id, status, runtime, engine, isolation, metadata, env, resources, network, user, workdir, root, shell, created_at, updated_at)
      VALUES ('${id}', 'running', 'base', 'oci', 'namespace', '{}', '{}', '{}', '{}', '', '', '{}', '', 1, 1);
      INSERT INTO store (sandbox_id, key, expires_at, value) VALUES ('${id}', 'ü', 7, '"ä"'), ('${id}', 'b', NULL, '2')`)
  }
  using db = openDb(directory)
  const store = new StoreTable(db)
  assert.deepEqual({ ...store.get(id, 'ü') }, { value: '"ä"', expiresAt: 7 })
  assert.deepEqual({ ...store.get(id, 'b') }, { value: '2', expiresAt: null })
  assert.deepEqual({ ...store.totals(id) }, { keys: 2, bytes: 8 })
})

test('of sandboxes of an older version with the same name the newest keeps it, and names are unique from then on', () => {
  const directory = temporary()
  const rows = [
    ['a', 'running', 1],
    ['a', 'failed', 3],
    ['a', 'hibernated', 2],
    ['a', 'stopped', 9],
    ['b', 'running', 1],
    ['b', 'creating', 2],
  ] as const
  const ids = rows.map(() => record().id)
  {
    using sqlite = new DatabaseSync(join(directory, 'islet.db'))
    for (const step of MIGRATIONS.slice(0, 2)) sqlite.exec(step)
    sqlite.exec('PRAGMA user_version = 2')
    const insert = sqlite.prepare(`INSERT INTO sandboxes
      (id, name, status, created_at, runtime, engine, isolation, metadata, env, resources, network, user, workdir, root, shell, updated_at)
      VALUES (?, ?, ?, ?, 'base', 'oci', 'namespace', '{}', '{}', '{}', '{}', '', '', '{}', '', 1)`)
    for (const [at, [name, status, createdAt]] of rows.entries())
      insert.run(ids[at]!, name, status, createdAt)
  }
  using db = openDb(directory)
  const table = new SandboxTable(db)
  assert.deepEqual(
    ids.map((id) => table.get(id)!.name),
    [null, 'a', null, 'a', 'b', null],
  )
  assert.equal(table.idOf('a'), ids[1])
  assert.throws(() => table.save({ ...table.get(ids[0]!)!, name: 'a' }), /UNIQUE/)
  table.save({ ...table.get(ids[1]!)!, status: 'stopped' })
  assert.equal(table.idOf('a'), undefined)
})

test('processes of an older version get the outcome that their end shows', () => {
  const directory = temporary()
  const { id } = record()
  const end = (exitCode: number, timedOut = false) => JSON.stringify({ exitCode, timedOut })
  const rows = [
    ['exited', end(0), 0, 'completed'],
    ['exited', end(0), 1 << 15, 'completed'],
    ['exited', end(3), 1 << 15, 'failed'],
    ['exited', end(124, true), 1 << 9, 'timeout'],
    ['exited', end(143), 1 << 15, 'cancelled'],
    ['exited', end(143), 1 << 9, 'failed'],
    ['lost', null, 0, 'failed'],
    ['running', null, 0, null],
  ] as const
  {
    using sqlite = new DatabaseSync(join(directory, 'islet.db'))
    const before = MIGRATIONS.findIndex((step) => step.includes('ADD COLUMN outcome'))
    for (const step of MIGRATIONS.slice(0, before)) sqlite.exec(step)
    sqlite.exec(`PRAGMA user_version = ${before};
      INSERT INTO sandboxes (id, status, runtime, engine, isolation, metadata, env, resources, network, user, workdir, root, cell, created_at, updated_at)
      VALUES ('${id}', 'running', 'base', 'oci', 'namespace', '{}', '{}', '{}', '{}', '', '', '{}', '', 1, 1)`)
    const insert =
      sqlite.prepare(`INSERT INTO processes (id, sandbox_id, status, result, cancel_signals, command, cwd, user, terminal, started_at, output_bytes)
      VALUES (?, ?, ?, ?, ?, '[]', '', '', 0, 1, 0)`)
    for (const [at, [status, result, signals]] of rows.entries())
      insert.run(`prc-${at}`, id, status, result, signals)
  }
  using db = openDb(directory)
  const processes = new ProcessTable(db)
  const found = rows.map((_, at) => processes.get(id, `prc-${at}`)!)
  assert.deepEqual(
    found.map(({ outcome }) => outcome),
    rows.map(([, , , outcome]) => outcome),
  )
  assert.deepEqual(
    found.flatMap(({ status, reason }) => (reason === null ? [] : status)),
    ['lost'],
  )
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

test('a list filters by status, name, project and metadata, and pages through everything once', () => {
  using db = openDb(temporary())
  const table = new SandboxTable(db)
  for (let index = 0; index < 25; index++) {
    table.save(
      record({
        name: `n${index}`,
        project: index % 2 ? 'odd' : 'even',
        status: index < 5 ? 'stopped' : 'running',
        metadata: { index, who: 'me', flag: index % 3 === 0 },
        createdAt: Math.floor(index / 4),
      }),
    )
  }
  assert.equal(table.list({}).total, 20)
  assert.equal(table.list({ status: 'all' }).total, 25)
  assert.equal(table.list({ status: 'stopped' }).total, 5)
  assert.equal(table.list({ name: 'n7', project: 'odd' }).total, 1)
  assert.equal(table.list({ name: 'n7', project: 'even' }).total, 0)
  assert.equal(table.list({ metadata: 'who=me' }).total, 20)
  assert.equal(table.list({ metadata: ['who=me', 'index=7'] }).total, 1)
  assert.equal(table.list({ metadata: "who=me' OR 1=1 --" }).total, 0)
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = table.list({ status: 'all', limit: 4, cursor })
    seen.push(...page.records.map(({ id }) => id))
    cursor = page.cursor
  } while (cursor)
  assert.equal(new Set(seen).size, 25)
  assert.equal(seen.length, 25)
  assert.throws(() => table.list({ cursor: 'nonsense' }), { code: 'bad_request' })
  assert.throws(() => table.list({ metadata: 'nonsense' }), { code: 'bad_request' })
})

test('a list is sorted as asked, and its pages by cursor or offset have everything once', () => {
  using db = openDb(temporary())
  const table = new SandboxTable(db)
  const statuses = ['running', 'paused', 'failed'] as const
  for (let index = 0; index < 25; index++)
    table.save(
      record({
        name: index % 4 ? `n${index % 9}-${index}` : null,
        status: statuses[index % 3],
        createdAt: Math.floor(index / 4),
        updatedAt: (index * 7) % 11,
      }),
    )
  let cursor: string | undefined
  const orders: [ListSandboxesParsed, (of: SandboxRecord) => string | number][] = [
    [{ sort: 'name' }, ({ name }) => name ?? ''],
    [{ sort: 'name', direction: 'desc' }, ({ name }) => name ?? ''],
    [{ sort: 'status' }, ({ status }) => status],
    [{ sort: 'updated' }, ({ updatedAt }) => updatedAt],
    [{ sort: 'updated', direction: 'asc' }, ({ updatedAt }) => updatedAt],
    [{ sort: 'created', direction: 'asc' }, ({ createdAt }) => createdAt],
  ]
  for (const [order, sortedBy] of orders) {
    const all = table.list({ ...order, limit: 1000 }).records
    const isUp = (order.direction ?? (order.sort === 'updated' ? 'desc' : 'asc')) === 'asc'
    const isSorted = all.every((each, at) => {
      const [before, here] = [sortedBy(all[at - 1] ?? each), sortedBy(each)]
      return isUp ? before <= here : before >= here
    })
    assert.ok(isSorted, JSON.stringify(order))
    const byCursor: SandboxRecord[] = []
    do {
      const page = table.list({ ...order, limit: 4, cursor })
      byCursor.push(...page.records)
      cursor = page.cursor
    } while (cursor)
    assert.deepEqual(byCursor, all)
    const byOffset = [0, 7, 14, 21].map((offset) => table.list({ ...order, limit: 7, offset }))
    assert.deepEqual(
      byOffset.flatMap(({ records }) => records),
      all,
    )
    assert.deepEqual([...new Set(byOffset.map(({ total }) => total))], [25])
    const { cursor: its } = table.list({ ...order, limit: 1 })
    assert.throws(() => table.list({ cursor: its }), { code: 'bad_request' }, 'it is of another order')
  }
  const { id } = table.list({}).records[0]!
  const forged = [['created-desc', null, id], ['created-desc', 1.5, id], ['created-desc', 1], { a: 1 }, 7]
  for (const text of ['', 'nonsense', ...forged.map((value) => JSON.stringify(value))])
    assert.throws(() => table.list({ cursor: Buffer.from(text).toString('base64url') }), {
      code: 'bad_request',
    })
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
