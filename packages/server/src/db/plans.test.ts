// The queries of a request must not take longer because there are many sandboxes, or were.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ActivityTable } from './activity.ts'
import { AgentTable } from './agents.ts'
import { CheckpointTable } from './checkpoints.ts'
import { type Db, openDb } from './db.ts'
import { EventTable } from './events.ts'
import { IdempotencyTable } from './idempotency.ts'
import { LayersHeld } from './layers-held.ts'
import { MagicLinkTable } from './magic-links.ts'
import { ProcessTable } from './processes.ts'
import { type SandboxRecord, SandboxTable } from './sandboxes.ts'
import { SessionTokenTable } from './session-tokens.ts'

/** A scan of this index reads the sandboxes that are there, none that was stopped. */
const PRESENT = 'USING (COVERING )?INDEX sandboxes_present'
const SCAN = new RegExp(`^SCAN (?!CONSTANT|.*VIRTUAL TABLE|\\w+ ${PRESENT})`)

test('no query of a create, a command, a list or a delete scans a whole table', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-plans-'))
  t.after(() => rmSync(directory, { recursive: true }))
  using db = openDb(directory)
  const asked = askAll(db)
  assert.ok(asked.size > 20)
  for (const sql of asked) {
    const steps = db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail)
    const scans = steps.filter((step) => SCAN.test(step))
    assert.deepEqual(scans, [], sql)
  }
})

/** Every statement that the tables make. */
function askAll(db: Db): Set<string> {
  const asked = new Set<string>()
  const told =
    <Name extends 'run' | 'get' | 'all' | 'value' | 'column'>(name: Name) =>
    (sql: string, ...values: Parameters<Db[Name]>[1][]) => {
      asked.add(sql)
      return db[name](sql, ...values)
    }
  const watched = {
    run: told('run'),
    get: told('get'),
    all: told('all'),
    value: told('value'),
    column: told('column'),
    transaction: (work: () => unknown) => db.transaction(work),
    // No cache, so that records are read too.
    afterCommit() {},
  } as unknown as Db
  const sandbox = { id: 'sbx-1', status: 'running', createdAt: 1, updatedAt: 1 } as SandboxRecord
  const rest = { runtime: '', engine: '', isolation: '', user: '', workdir: '', cell: '' }
  const json = { metadata: {}, env: {}, resources: {}, network: {}, timeouts: {}, origin: null }
  const root = { layer: 'lyr-1', trees: [] }
  const record = { ...sandbox, ...rest, ...json, root } as unknown as SandboxRecord
  const none = { name: null, description: null, project: null, reason: null, image: null, memory: null }
  const never = { suspendedAt: null, stoppedAt: null, baseSnapshot: null, patchesOf: null }

  const sandboxes = new SandboxTable(watched)
  sandboxes.save({ ...record, ...none, ...never })
  sandboxes.get(record.id)
  sandboxes.countLive()
  sandboxes.idOf('a')
  const cursor = Buffer.from(JSON.stringify(['created-desc', 1, record.id])).toString('base64url')
  for (const query of [
    {},
    { cursor },
    { status: 'failed' as const },
    { name: 'a' },
    { project: 'a' },
    { metadata: 'a=b' },
  ])
    sandboxes.list(query)

  const layers = new LayersHeld(watched)
  layers.hold(record.id, root)
  layers.isHeld('lyr-1')

  const idempotency = new IdempotencyTable(watched)
  idempotency.find('k')
  idempotency.save('k', 'f', record.id)

  const activity = new ActivityTable(watched)
  activity.save(record.id, 1)
  activity.get(record.id)

  const events = new EventTable(watched)
  events.add(record.id, 'created', {})
  for (const query of [{}, { after: 1 }, { before: 1, types: ['oom' as const] }])
    for (const direction of ['asc', 'desc'] as const)
      events.list(record.id, { ...query, direction, limit: 1 })
  events.prune(record.id, 1)

  const processes = new ProcessTable(watched)
  const start = { command: 'true', pid: null, cwd: '/', user: '', terminal: false, terminalId: null }
  const way = { service: null, cancelSignals: 0, maxRunAfterDisconnectMs: null, foreground: true }
  const end = {
    keepAwake: true,
    status: 'running' as const,
    outcome: null,
    reason: null,
    endedAt: null,
    outputBytes: 0,
    keepOutputBytes: 1,
    result: null,
  }
  processes.insert({ id: 'prc-1', sandboxId: record.id, startedAt: 1, ...start, ...way, ...end })
  processes.setCancelSignals('prc-1', 1)
  processes.get(record.id, 'prc-1')
  processes.find('prc-1')
  processes.running(record.id)
  processes.list(record.id, { limit: 1 })
  processes.list(record.id, { status: 'timeout', limit: 1, offset: 1 })
  processes.count(record.id, {})
  processes.idsOfTerminal('trm-1')
  processes.removeOld(record.id, 1)
  processes.ended('prc-1', { ...end, pid: 1 })
  const agents = new AgentTable(watched)
  agents.insert('prc-1')
  agents.has('prc-1')
  agents.ids(record.id, 1)
  processes.remove('prc-1')

  const checkpoints = new CheckpointTable(watched)
  const after = Buffer.from(JSON.stringify(['created-desc', 1, `ckp-${'0'.repeat(20)}`])).toString(
    'base64url',
  )
  checkpoints.list(record.id)
  checkpoints.page({ limit: 1, cursor: after, sandbox: record.id })

  const tokens = new SessionTokenTable(watched)
  const times = { createdAt: 1, expiresAt: 2, lastUsedAt: null }
  tokens.insert({ id: 'tok-1', sandboxId: record.id, hash: 'a', description: null, ...times })
  tokens.byHash('a')
  tokens.get(record.id, 'tok-1')
  tokens.list(record.id)
  tokens.count(record.id)
  tokens.used('tok-1', 1)
  tokens.removeExpired(record.id, 1)
  tokens.remove('tok-1')
  tokens.removeAll(record.id)

  const links = new MagicLinkTable(watched)
  links.insert({ hash: 'a', sandboxId: record.id, redirectUrl: '/', expiresAt: 1, usedAt: null })
  links.get('a')
  links.countUsable(record.id, 1)
  links.use('a', 1)
  links.removeAll(record.id)

  layers.holdOnly(record.id, undefined)
  sandboxes.remove(record.id)
  return asked
}
