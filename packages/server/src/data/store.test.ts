import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { IsletError, newId } from '@islet/contract'
import type { Db } from '../db/db.ts'
import { SandboxTable } from '../db/sandboxes.ts'
import { SavedTable } from '../db/saved-states.ts'
import { openStore } from './testing/store.ts'

const directories: string[] = []
after(() => {
  for (const directory of directories) rmSync(directory, { recursive: true })
})
const temporary = () => {
  directories.push(mkdtempSync(join(tmpdir(), 'islet-store-')))
  return directories.at(-1)!
}

const isFull = (error: unknown) => error instanceof IsletError && error.code === 'limit_exceeded'
const rows = (db: Db) => db.get<{ n: number }>('SELECT count(*) AS n FROM store')!.n
const set = (key: string, value: string, ttl_seconds?: number) =>
  ({ op: 'set', key, value, ttl_seconds }) as const

function keepStore(db: Db, id: string, sandboxId: string): void {
  db.run(
    `INSERT INTO saved_states (id, sandbox_id, status, state, services, patch_runs, memory, frozen_ms, created_at)
     VALUES (?, ?, 'ready', '{}', '[]', '[]', 0, 0, 0)`,
    id,
    sandboxId,
  )
  new SavedTable(db).copyStoreFrom(id, sandboxId, Date.now())
}

test('the number of keys is bounded exactly, also after overwrites and deletes', async () => {
  await using opened = openStore(temporary(), { keys: 3, bytes: 1000 })
  const { store, sandboxId } = opened
  for (const key of ['a', 'b', 'c', 'a', 'b']) store.set(sandboxId, key, { value: '1' })
  assert.throws(() => store.set(sandboxId, 'd', { value: '1' }), isFull)
  store.set(sandboxId, 'a', { value: '22' })
  store.delete(sandboxId, 'missing')
  assert.throws(() => store.set(sandboxId, 'd', { value: '1' }), isFull)
  assert.deepEqual(store.delete(sandboxId, 'b'), { deleted: true, ok: true })
  store.set(sandboxId, 'd', { value: '1' })
  assert.deepEqual(store.list(sandboxId, {}).keys, ['a', 'c', 'd'])
})

test('the bytes of keys and values together are bounded exactly', async () => {
  await using opened = openStore(temporary(), { keys: 100, bytes: 20 })
  const { store, sandboxId } = opened
  store.set(sandboxId, 'é', { value: '"1234567"' })
  store.set(sandboxId, 'b', { value: '"12345"' })
  assert.throws(() => store.set(sandboxId, 'b', { value: '"1234567"' }), isFull)
  assert.equal(store.get(sandboxId, 'b').json, '"12345"')
  store.set(sandboxId, 'é', { value: '"123456"' })
  store.set(sandboxId, 'b', { value: '"123456"' })
  assert.throws(() => store.set(sandboxId, 'b', { value: '"12345678"' }), isFull)
})

test('a batch that would exceed a limit changes nothing; one that makes room first succeeds', async () => {
  await using opened = openStore(temporary(), { keys: 2, bytes: 1000 })
  const { store, sandboxId } = opened
  store.batch(sandboxId, [set('a', '1'), set('b', '1')])
  assert.throws(() => store.batch(sandboxId, [set('a', '2'), set('c', '1')]), isFull)
  assert.equal(store.get(sandboxId, 'a').json, '1')
  store.batch(sandboxId, [
    set('c', '1'),
    set('d', '1'),
    { op: 'delete', key: 'a' },
    { op: 'delete', key: 'b' },
  ])
  assert.deepEqual(store.list(sandboxId, {}).keys, ['c', 'd'])
  assert.throws(() => store.set(sandboxId, 'e', { value: '1' }), isFull)
})

test('expired keys do not count against the limits', async () => {
  await using opened = openStore(temporary(), { keys: 2, bytes: 1000 })
  const { store, sandboxId } = opened
  store.batch(sandboxId, [set('a', '1', 0.001), set('b', '1')])
  await setTimeout(10)
  store.set(sandboxId, 'c', { value: '1' })
  assert.deepEqual(store.list(sandboxId, {}).keys, ['b', 'c'])
  assert.throws(() => store.set(sandboxId, 'd', { value: '1' }), isFull)
  store.set(sandboxId, 'b', { value: '1', ttl_seconds: 0.001 })
  await setTimeout(10)
  store.batch(sandboxId, [set('e', '1')])
  assert.throws(() => store.batch(sandboxId, [set('f', '1')]), isFull)
})

test('the bounds hold after a restart', async () => {
  const directory = temporary()
  const limits = { keys: 3, bytes: 30 }
  {
    await using opened = openStore(directory, limits)
    const { store, sandboxId } = opened
    store.batch(sandboxId, [set('a', '"1234567"'), set('b\0é', '1'), set('gone', '1', 0.001)])
    await setTimeout(10)
  }
  await using opened = openStore(directory, limits)
  const { store, sandboxId } = opened
  assert.throws(() => store.set(sandboxId, 'a', { value: '"123456789012345678901234567890"' }), isFull)
  store.set(sandboxId, 'c', { value: '1' })
  assert.throws(() => store.set(sandboxId, 'd', { value: '1' }), isFull)
  assert.deepEqual(store.list(sandboxId, {}).keys, ['a', 'b\0é', 'c'])
})

test('a new server removes expired keys and keys of removed sandboxes', async () => {
  const directory = temporary()
  {
    await using opened = openStore(directory)
    const { store, sandboxId } = opened
    const many = Array.from({ length: 700 }, (_, n) => set(`k${n}`, '1', 0.001))
    store.batch(sandboxId, [...many, set('kept', '1')])
    await setTimeout(10)
  }
  {
    await using opened = openStore(directory)
    while (rows(opened.db) > 1) await setTimeout(1)
    assert.equal(opened.store.get(opened.sandboxId, 'kept').json, '1')
    opened.save({ status: 'stopped' })
  }
  await using opened = openStore(directory)
  while (rows(opened.db) > 0) await setTimeout(1)
})

test('deleting a sandbox removes its keys and no others', async () => {
  const directory = temporary()
  await using opened = openStore(directory)
  const { store, sandboxId } = opened
  store.batch(
    sandboxId,
    Array.from({ length: 700 }, (_, n) => set(`k${n}`, '1')),
  )
  const table = new SandboxTable(opened.db)
  const other = newId('sandbox')
  table.save({ ...table.get(sandboxId)!, id: other })
  store.set(other, 'k1', { value: '2' })
  await opened.remove()
  assert.equal(rows(opened.db), 1)
  assert.equal(store.get(other, 'k1').json, '2')
  assert.throws(() => store.get(sandboxId, 'k1'), { code: 'invalid_state' })
})

test('a full disk is reported, and existing keys stay', async () => {
  await using opened = openStore(temporary(), { keys: 3, bytes: 10_000_000 })
  const { store, sandboxId, db } = opened
  store.set(sandboxId, 'a', { value: '1' })
  const { page_count: pages } = db.get<{ page_count: number }>('PRAGMA page_count')!
  db.get(`PRAGMA max_page_count = ${pages + 4}`)
  const large = JSON.stringify('x'.repeat(1_000_000))
  const isDiskFull = (error: unknown) => error instanceof IsletError && error.code === 'server_disk_full'
  assert.throws(() => store.set(sandboxId, 'b', { value: large }), isDiskFull)
  assert.throws(() => store.batch(sandboxId, [set('a', '2'), set('b', large)]), isDiskFull)
  assert.deepEqual(store.list(sandboxId, {}).keys, ['a'])
  assert.equal(store.get(sandboxId, 'a').json, '1')
  store.batch(sandboxId, [set('b', '1'), set('c', '1')])
  assert.throws(() => store.set(sandboxId, 'd', { value: '1' }), isFull)
})

test('a sandbox that failed can be read and not written', async () => {
  await using opened = openStore(temporary())
  const { store, sandboxId } = opened
  store.set(sandboxId, 'a', { value: '1' })
  opened.save({ status: 'failed' })
  assert.equal(store.get(sandboxId, 'a').json, '1')
  assert.deepEqual(store.list(sandboxId, {}).keys, ['a'])
  for (const write of [
    () => store.set(sandboxId, 'a', { value: '2' }),
    () => store.delete(sandboxId, 'a'),
    () => store.batch(sandboxId, []),
  ])
    assert.throws(write, { code: 'invalid_state' })
})

test('after a restore the limits hold for the keys of the checkpoint', async () => {
  await using opened = openStore(temporary(), { keys: 3, bytes: 1000 })
  const { store, sandboxId, db } = opened
  const saved = new SavedTable(db)
  const keep = (id: string) => keepStore(db, id, sandboxId)
  const restore = (id: string) => opened.restore(() => saved.copyStoreTo(id, sandboxId, Date.now()))
  store.set(sandboxId, 'a', { value: '1' })
  keep('one')
  for (const key of ['b', 'c']) store.set(sandboxId, key, { value: '1' })
  keep('full')
  assert.throws(() => store.set(sandboxId, 'd', { value: '1' }), isFull)

  await restore('one')
  assert.deepEqual(store.list(sandboxId, {}).keys, ['a'])
  for (const key of ['d', 'e']) store.set(sandboxId, key, { value: '1' })
  assert.throws(() => store.set(sandboxId, 'f', { value: '1' }), isFull)

  await restore('one')
  store.set(sandboxId, 'g', { value: '1' })
  await restore('full')
  assert.throws(() => store.set(sandboxId, 'd', { value: '1' }), isFull)
  assert.deepEqual(store.list(sandboxId, {}).keys, ['a', 'b', 'c'])
})

test('saving and restoring a store copies no values; a value is removed with its last reference', async () => {
  await using opened = openStore(temporary())
  const { store, sandboxId, db } = opened
  const saved = new SavedTable(db)
  const pages = () => db.get<{ page_count: number }>('PRAGMA page_count')!.page_count
  const values = () => db.get<{ n: number }>('SELECT count(*) AS n FROM store_values')!.n
  const large = JSON.stringify('x'.repeat(1024 * 1024 - 2))
  for (let i = 0; i < 16; i++) store.set(sandboxId, `k${i}`, { value: large })
  const before = pages()
  for (let i = 0; i < 20; i++) keepStore(db, `saved-${i}`, sandboxId)
  for (let i = 0; i < 20; i++)
    await opened.restore(() => saved.copyStoreTo(`saved-${i}`, sandboxId, Date.now()))
  assert.ok(pages() - before < 100, `${pages() - before} more pages`)
  assert.equal(values(), 16)
  assert.equal(store.get(sandboxId, 'k3').json, large)

  store.set(sandboxId, 'k0', { value: '1' })
  store.delete(sandboxId, 'k1')
  assert.equal(values(), 17)
  assert.equal(saved.storePage('saved-7', '', 1)[0]!.value, large)
  for (let i = 0; i < 20; i++) saved.remove(`saved-${i}`)
  assert.equal(values(), 15)
  await opened.remove()
  assert.equal(values(), 0)
})
