// Databases of older versions.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openDb } from './db.ts'
import { MIGRATIONS } from './migrations.ts'
import { ProcessTable } from './processes.ts'
import { SandboxTable } from './sandboxes.ts'
import { StoreTable } from './store.ts'
import { record, temporary } from './testing.ts'

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
