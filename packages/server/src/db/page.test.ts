import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListSandboxesParsed } from '@islet/contract'
import { openDb } from './db.ts'
import { type SandboxRecord, SandboxTable } from './sandboxes.ts'
import { record, temporary } from './testing.ts'

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
