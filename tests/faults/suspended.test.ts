// Suspended sandboxes and their timeouts across restarts of the server and reboots of the machine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { becomes, eventsOf, movesOf } from '../support/life.ts'
import { reboot } from '../support/reboot.ts'
import type { TestServer } from '../support/server.ts'
import { say } from '../support/shell.ts'
import { assertNoLeak, withServer } from './crash.ts'

const MADE = ['created', 'started']
const HOST = { env: { ISLET_DEFAULT_RUNTIME: 'host' } }

test('a suspended sandbox stays suspended under the next server, and continues where it was', async () => {
  await withServer(async (server) => {
    for (const [stop, goOn] of [
      ['pause', 'resume'],
      ['hibernate', 'wake'],
    ] as const) {
      const sandbox = await server.islet().sandboxes.create()
      const counter = await sandbox.exec.spawn('n=0; while n=$((n+1)); do echo $n; sleep 0.01; done > count')
      await until(() => sandbox.files.exists('count'))
      const { status } = await sandbox[stop]()
      await server.kill()
      await server.start()
      const again = await server.islet().sandboxes.connect(sandbox.id)
      assert.equal(again.status, status)
      const { cpuUsec } = await again.usage()
      await sleep(100)
      assert.equal((await again.usage()).cpuUsec, cpuUsec)
      await (goOn === 'wake' ? again.wake() : again.resume())
      const { status: process, pid } = await again.exec.get(counter.id)
      assert.deepEqual([process, pid], ['running', counter.pid])
      const seen = Number(await say(again, 'wc -l < count'))
      await until(async () => Number(await say(again, 'wc -l < count')) > seen)
      // Any use wakes it too.
      await again[stop]()
      await server.stop()
      await server.start()
      const last = await server.islet().sandboxes.connect(sandbox.id)
      assert.equal((await last.exec.run('true')).autoResumed, true)
      assert.equal((await last.exec.get(counter.id)).status, 'running')
      await assertNoLeak(server)
      await last.kill()
    }
  }, HOST)
})

test('a paused timeout that expired while the server was down takes effect; other pauses continue', async () => {
  await withServer(async (server) => {
    const over = await server.islet().sandboxes.create({ timeout: { paused: '500ms' } })
    const waiting = await server.islet().sandboxes.create({ timeout: { paused: '1h' } })
    await over.pause()
    const { terminatesAt } = await waiting.pause()
    await server.kill()
    await sleep(1000)
    await server.start()
    const again = await server.islet().sandboxes.connect(over.id)
    await becomes(again, 'stopped')
    const moves = (await movesOf(server, over.id)).filter((type) => !MADE.includes(type))
    assert.deepEqual(moves, ['paused', 'paused-timeout', 'stopped'])
    assert.equal((await server.islet().sandboxes.get(waiting.id)).terminatesAt, terminatesAt)
    // The record says so first; what it held goes after that.
    const isClean = () =>
      assertNoLeak(server).then(
        () => true,
        () => false,
      )
    await until(isClean)
  }, HOST)
})

test('an idle sandbox is hibernated although its server was killed; a busy one, or one with time left, is not', async () => {
  await withServer(async (server) => {
    const busy = await server.islet().sandboxes.create({ timeout: { idle: '3s' } })
    const job = await busy.exec.spawn('until [ -e enough ]; do sleep 0.1; done')
    const kept = await server.islet().sandboxes.create({ timeout: { idle: '3s' }, keepAwake: true })
    const idle = await server.islet().sandboxes.create({ timeout: { idle: '3s' } })
    const patient = await server.islet().sandboxes.create({ timeout: { idle: '1h' } })
    const never = await server.islet().sandboxes.create({ timeout: { idle: 0 } })
    for (let times = 0; times < 2; times++) {
      await sleep(500)
      await server.kill()
      await server.start()
    }
    await becomes(await server.islet().sandboxes.connect(idle.id), 'hibernated')
    for (const { id } of [patient, never, kept, busy])
      assert.equal((await server.islet().sandboxes.get(id)).status, 'running')
    const again = await server.islet().sandboxes.connect(busy.id)
    const reasons = [{ kind: 'job', id: job.id }]
    assert.deepEqual((await again.getInfo()).awake, { reasons, sleepsAt: null })
    await again.files.write('enough', '')
    await becomes(again, 'hibernated')
    assert.equal((await again.exec.get(job.id)).jobStatus, 'completed')
    assert.deepEqual((await movesOf(server, idle.id)).slice(2), ['idle-timeout', 'hibernated'])
  }, HOST)
})

test('after the machine was started anew all are there: files, store, env and services', {
  timeout: 300_000,
}, async () => {
  await withServer(async (server) => {
    const made = await Promise.all(['hibernate', 'pause', 'run'].map((how) => furnish(server, how)))
    const [hibernated, paused] = made
    await hibernated!.hibernate()
    await paused!.pause()
    await server.stop()
    await reboot(server)
    await server.start()
    const states = await Promise.all(
      made.map(async ({ id }) => (await server.islet().sandboxes.get(id)).status),
    )
    assert.deepEqual(states, ['hibernated', 'paused', 'running'])
    await (await server.islet().sandboxes.connect(hibernated!.id)).wake()
    await (await server.islet().sandboxes.connect(paused!.id)).resume()
    for (const [at, how] of ['hibernate', 'pause', 'run'].entries())
      await assertFurnished(await server.islet().sandboxes.connect(made[at]!.id), how)
    const woken = (await eventsOf(server, hibernated!.id)).find(({ type }) => type === 'woken')
    assert.deepEqual(woken!.data, { memory: false })
    await assertNoLeak(server)
  }, HOST)
})

test('the first use after the machine was started anew wakes too', async () => {
  await withServer(async (server) => {
    const sandbox = await furnish(server, 'used')
    await sandbox.hibernate()
    await server.kill()
    await reboot(server)
    await server.start()
    const again = await server.islet().sandboxes.connect(sandbox.id)
    assert.equal(again.status, 'hibernated')
    const results = await Promise.all(Array.from({ length: 20 }, () => again.exec.run('cat file')))
    for (const { stdout } of results) assert.equal(stdout, 'used')
    assert.ok(results.some(({ autoResumed }) => autoResumed))
    await assertFurnished(again, 'used')
    assert.equal((await movesOf(server, sandbox.id)).filter((type) => type === 'woken').length, 1)
  }, HOST)
})

async function furnish(server: TestServer, how: string): Promise<Sandbox> {
  const sandbox = await server.islet().sandboxes.create({ env: { HOW: how } })
  await sandbox.files.write('file', how)
  await sandbox.store.set('how', { value: how })
  await sandbox.service.start({
    name: 'web',
    start: 'python3 -m http.server --bind 127.0.0.1 $PORT',
    port: 8000,
  })
  await sandbox.service.waitFor('web')
  return sandbox
}

async function assertFurnished(sandbox: Sandbox, how: string): Promise<void> {
  assert.equal(await say(sandbox, 'cat file; printf " $HOW"'), `${how} ${how}`)
  assert.equal((await sandbox.store.get('how')).value, how)
  assert.equal((await sandbox.service.waitFor('web')).status, 'ready')
  const url = await sandbox.getUrl({ port: 8000 })
  assert.equal(await (await fetch(`${url}/file`)).text(), how)
}
