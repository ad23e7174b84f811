// Events and patches behind the real wall, where suspended sandboxes keep their memory.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SandboxEvent } from 'islet'
import { until } from '../coming-from/until.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const { server, islet } = suite

test('a client that follows hears of every move once, across servers that stop and die', async () => {
  const sandbox = await suite.create()
  const seen: SandboxEvent[] = []
  const following = (async () => {
    for await (const event of sandbox.events.follow()) seen.push(event)
  })()
  const types = () => seen.map(({ type }) => type)
  await sandbox.pause()
  await until(() => types().includes('paused'))
  await server.stop()
  await server.start()
  await sandbox.resume()
  await until(() => types().includes('resumed'))
  await server.kill()
  await server.start()
  await sandbox.hibernate()
  await sandbox.wake()
  await sandbox.kill()
  await following
  assert.deepEqual(types(), ['created', 'started', 'paused', 'resumed', 'hibernated', 'woken', 'stopped'])
  assert.deepEqual(seen, (await islet.events(sandbox.id).list({ direction: 'asc' })).events)
})

test('a sandbox that wakes with its memory runs its patches before the call that woke it', async () => {
  const base = await suite.create({ user: 'nobody', env: { TEAM: 'blue' } })
  const { id } = await base.createCheckpoint('base')
  const sandbox = await islet.checkpoints.createSandbox(id)
  const counter = await sandbox.exec.spawn('n=0; while :; do n=$((n+1)); echo $n > /tmp/n; sleep 0.05; done')
  const first = await islet.checkpoints.patches.create(id, { script: 'echo "$TEAM $(id -u)" > /etc/patched' })
  await sandbox.hibernate()
  assert.equal(await say(sandbox, 'cat /etc/patched'), 'blue 0')
  await islet.checkpoints.patches.create(id, { script: 'sleep 1; echo second >> /etc/patched' })
  await sandbox.pause()
  const { patches } = await sandbox.resume()
  assert.deepEqual(
    patches?.map(({ status }) => status),
    ['applied', 'applied'],
  )
  assert.equal(patches?.[0]?.patchId, first.id)
  assert.equal((await sandbox.exec.get(counter.id)).status, 'running', 'it was never disturbed')
  const [, ...told] = (await sandbox.events.list({ types: ['woken', 'resumed', 'patch.applied'] })).events
    .reverse()
    .map(({ type }) => type)
  assert.deepEqual(told, ['patch.applied', 'resumed', 'patch.applied'])
})

test('a sandbox suspended during a patch continues the patch when it wakes, and is not idle until the patch ends', async () => {
  const base = await suite.create()
  const { id } = await base.createCheckpoint('base')
  await islet.checkpoints.patches.create(id, { script: 'sleep 3; echo once >> log' })
  const making = islet.checkpoints.createSandbox(id, { name: 'slow', timeout: { idle: '1s' } })
  let found: string | undefined
  await until(async () => {
    found = (await islet.sandboxes.list({ name: 'slow' })).sandboxes[0]?.id
    return found !== undefined
  })
  const sandbox = await islet.sandboxes.connect(found!)
  await until(async () => (await sandbox.listPatches())[0]?.status === 'running')
  await sandbox.pause()
  await sandbox.resume()
  assert.deepEqual(
    (await sandbox.listPatches()).map(({ status }) => status),
    ['applied'],
  )
  await making
  const types = (await sandbox.events.list({ direction: 'asc', limit: 1000 })).events.map(({ type }) => type)
  assert.ok(types.indexOf('patch.applied') < (types.indexOf('idle-timeout') + 1 || Number.POSITIVE_INFINITY))
  assert.equal(await say(sandbox, 'cat log'), 'once')
})
