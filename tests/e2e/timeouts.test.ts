// The timeouts of sandboxes, idle and paused, and what keeps a sandbox awake.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode, type Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { becomes, eventsOf, movesOf } from '../support/life.ts'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const { server } = suite

const IDLE = { timeout: { idle: '2s' } } as const
const MADE = ['created', 'started']
const SLEPT = ['idle-timeout', 'hibernated']
/** Takes a request and does not answer. */
const SILENT = `
import socket
server = socket.create_server(('127.0.0.1', 8000))
client = server.accept()[0]
client.recv(1000)
open('here', 'w')
server.accept()
`

test('an idle sandbox is hibernated, and the next use wakes it and says so', async () => {
  await using sandbox = await suite.create(IDLE)
  const { id, keepAwake } = await sandbox.exec.spawn('sleep 1000', { keepAwake: false })
  const service = await sandbox.service.start({ name: 'web', start: 'sleep 1000' })
  const terminal = await sandbox.terminal.create({ pty: true })
  terminal.disconnect()
  const { keepAwake: typed } = await sandbox.terminal.retrieve(terminal.id)
  assert.deepEqual([keepAwake, service.keepAwake, typed], [false, false, false])
  let sleepsAt: string | null | undefined
  await until(async () => {
    sleepsAt = (await sandbox.getInfo()).awake?.sleepsAt
    return typeof sleepsAt === 'string'
  })
  assert.ok(Date.parse(sleepsAt!) <= Date.now() + 2000, sleepsAt!)
  // Looking at it all the time is no use of it.
  await until(async () => {
    await Promise.all([
      sandbox.isRunning(),
      sandbox.usage(),
      sandbox.exec.list(),
      suite.islet.sandboxes.list(),
    ])
    return (await sandbox.getInfo()).status === 'hibernated'
  })
  assert.equal((await sandbox.getInfo()).awake, null)
  assert.deepEqual(await movesOf(server, sandbox.id), [...MADE, ...SLEPT])
  const [idle] = (await eventsOf(server, sandbox.id)).filter(({ type }) => type === 'idle-timeout')
  assert.deepEqual(idle!.data, { idleMs: 2000, action: 'hibernate' })
  assert.equal((await sandbox.exec.run('true')).autoResumed, true)
  assert.equal((await sandbox.exec.get(id)).status, 'running')
  assert.deepEqual((await movesOf(server, sandbox.id)).slice(4, 5), ['woken'])
})

test('commands, jobs, attached clients, open preview connections and keepAwake keep a sandbox awake', {
  timeout: 300_000,
}, async () => {
  const made = await Promise.all(Array.from({ length: 8 }, () => suite.create()))
  const [commanded, attached, visited, typed, busy, serving, open, set] = made
  const command = commanded!.exec.run('sleep 10; echo done')
  const { id } = await attached!.exec.spawn('sleep 1000', { keepAwake: false })
  const job = await busy!.exec.spawn('sleep 1000')
  await serving!.service.start({ name: 'web', start: 'sleep 1000', keepAwake: true })
  const kept = await open!.terminal.create({ pty: true, keepAwake: true })
  kept.disconnect()
  await set!.update({ keepAwake: true })
  const session = await attached!.exec.attach(id)
  const terminal = await typed!.terminal.create({ pty: true })
  const leave = await visit(visited!)
  for (const used of made) await used.setTimeout('2s')

  assert.deepEqual([(await command).stdout, (await command).autoResumed], ['done\n', false])
  const reasons = [
    [attached!, { kind: 'session', id }],
    [visited!, { kind: 'preview', id: '8000' }],
    [typed!, { kind: 'session', id: (await typed!.terminal.retrieve(terminal.id)).processId }],
    [busy!, { kind: 'job', id: job.id }],
    [serving!, { kind: 'service', id: 'web' }],
    [open!, { kind: 'terminal', id: kept.id }],
    [set!, { kind: 'setting' }],
  ] as const
  for (const [used, reason] of reasons) {
    const { status, awake } = await used.getInfo()
    assert.deepEqual([status, awake], ['running', { reasons: [reason], sleepsAt: null }])
    assert.deepEqual(await movesOf(server, used.id), MADE)
  }
  session.close()
  terminal.disconnect()
  leave()
  await busy!.exec.kill(job.id)
  await serving!.service.stop('web')
  await open!.terminal.destroy(kept.id)
  await set!.update({ keepAwake: false })
  for (const used of made) {
    await becomes(used, 'hibernated')
    await used.kill()
  }
})

test('with onIdle kill an idle sandbox is stopped, and says why', async () => {
  const sandbox = await suite.create({ timeout: { idle: '1s', onIdle: 'kill' } })
  await becomes(sandbox, 'stopped')
  assert.equal((await sandbox.getInfo()).reason, 'It was idle for 1 s.')
  assert.deepEqual(await movesOf(server, sandbox.id), [...MADE, 'idle-timeout', 'stopped'])
  await failsWith(sandbox.exec.run('true'), 'invalid_state')
})

test('timeouts have their defaults, and each can be changed alone', async () => {
  await using sandbox = await suite.create()
  const defaults = { idleMs: 300_000, executionMs: 0, pausedMs: 0, onIdle: 'hibernate' }
  assert.deepEqual((await sandbox.getInfo()).timeouts, defaults)
  assert.deepEqual((await sandbox.setTimeout('10m')).timeouts, { ...defaults, idleMs: 600_000 })
  assert.deepEqual((await sandbox.setTimeout(0)).timeouts, { ...defaults, idleMs: 0 })
  const all = { idle: '365d', execution: '1m', paused: 5000, onIdle: 'kill' } as const
  const changed = { idleMs: 365 * 86_400_000, executionMs: 60_000, pausedMs: 5000, onIdle: 'kill' }
  assert.deepEqual((await sandbox.setTimeout(all)).timeouts, changed)
  assert.deepEqual((await sandbox.setTimeout({})).timeouts, changed)
  await sandbox.hibernate()
  assert.deepEqual((await sandbox.wake({ timeout: '20m' })).timeouts, { ...changed, idleMs: 1_200_000 })
  const last = (await eventsOf(server, sandbox.id)).findLast(({ type }) => type === 'timeout.changed')
  assert.equal(last!.data.idleMs, 1_200_000)
  for (const bad of [-1, '366d', 'soon', Number.NaN, { idle: '1h', other: 1 }, { onIdle: 'sleep' }])
    await assert.rejects(
      sandbox.setTimeout(bad as number),
      (error) => hasCode(error, 'bad_request'),
      String(bad),
    )
  assert.equal((await sandbox.getInfo()).timeouts.idleMs, 1_200_000)
})

test('a shorter timeout applies to a sandbox that is idle already; 0 turns it off', async () => {
  await using shorter = await suite.create({ timeout: { idle: '1h' } })
  await using never = await suite.create({ timeout: { idle: '1h' } })
  await never.setTimeout('3s')
  await never.setTimeout(0)
  await shorter.setTimeout('3s')
  await becomes(shorter, 'hibernated')
  assert.ok(await never.isRunning(), 'its time would have been over before')
})

test('a use that comes just as the time is over is never lost', { timeout: 300_000 }, async () => {
  await using sandbox = await suite.create({ timeout: { idle: 15 } })
  for (let round = 0; round < 60; round++) {
    const results = await Promise.all([1, 2, 3].map((n) => sandbox.exec.run(`echo ${n}`)))
    assert.deepEqual(
      results.map(({ stdout }) => stdout),
      ['1\n', '2\n', '3\n'],
    )
    await sleep(5 + Math.random() * 20)
  }
  const moves = (await movesOf(server, sandbox.id)).filter((type) => type !== 'idle-timeout')
  assert.ok(moves.includes('hibernated'), 'it slept at least once')
  for (const [at, type] of moves.slice(2).entries())
    assert.equal(type, at % 2 === 0 ? 'hibernated' : 'woken', moves.join(' '))
})

test('a pause with a timeout says when it ends, and ends then', async () => {
  const sandbox = await suite.create({ timeout: { paused: '2s' } })
  const { terminatesAt, updatedAt } = await sandbox.pause()
  assert.equal(Date.parse(terminatesAt!), Date.parse(updatedAt) + 2000)
  await becomes(sandbox, 'stopped')
  const { stoppedAt, reason, terminatesAt: over } = await sandbox.getInfo()
  assert.ok(stoppedAt! >= terminatesAt!, `${stoppedAt} is not before ${terminatesAt}`)
  assert.deepEqual([reason, over], ['It was paused for 2 s.', null])
  assert.deepEqual(await movesOf(server, sandbox.id), [...MADE, 'paused', 'paused-timeout', 'stopped'])
})

test('a pause that ends before its time has no end; one without a timeout never ends', async () => {
  await using sandbox = await suite.create({ timeout: { paused: '3s' } })
  const later = await suite.create({ timeout: { paused: '3s' } })
  await sandbox.pause()
  assert.equal((await sandbox.setTimeout({ paused: 0 })).terminatesAt, null)
  const changed = await sandbox.setTimeout({ paused: '1h' })
  const { createdAt } = (await eventsOf(server, sandbox.id)).find(({ type }) => type === 'paused')!
  assert.ok(Math.abs(Date.parse(changed.terminatesAt!) - Date.parse(createdAt) - 3_600_000) < 1000)
  await later.pause()
  await becomes(later, 'stopped')
  assert.equal((await sandbox.getInfo()).status, 'paused', 'its time would have been over before')
  assert.equal((await sandbox.resume()).terminatesAt, null)
  assert.equal(await say(sandbox, 'echo on'), 'on')
})

/** Leaves a request unanswered inside. */
async function visit(sandbox: Sandbox): Promise<() => void> {
  await sandbox.files.write('server.py', SILENT)
  await sandbox.exec.spawn('python3 server.py', { keepAwake: false })
  await until(async () => (await sandbox.ports()).some(({ port }) => port === 8000))
  const leave = new AbortController()
  fetch(await sandbox.getUrl({ port: 8000 }), { signal: leave.signal }).catch(() => {})
  await until(() => sandbox.files.exists('here'))
  return () => leave.abort()
}
