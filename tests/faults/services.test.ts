// Services while the server is killed, at any moment, and when the machine is started again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode, type Sandbox, type ServiceInfo } from 'islet'
import { until } from '../coming-from/until.ts'
import { slotOf, tracesOf } from '../support/leftovers.ts'
import type { TestServer } from '../support/server.ts'
import { assertNoLeak, crashDuring, killCells, MOMENTS, withServer } from './crash.ts'

const WEB = 'exec python3 -m http.server "$PORT" --bind 127.0.0.1'

test('a service keeps running without the server, and the next server keeps it', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const healthCheck = { path: '/', interval: 100 }
    await sandbox.service.start({ name: 'web', start: WEB, port: 3000, healthCheck, restartPolicy: 'always' })
    const { pid, url } = await sandbox.service.waitFor('web')
    await server.kill()
    await server.start()
    const again = await sandbox.service.waitFor('web')
    assert.deepEqual([again.pid, again.restartCount, again.url], [pid, 0, url])
    await sandbox.exec.run(`kill -9 ${pid}`)
    const restarted = await serviceUntil(
      sandbox,
      'web',
      ({ status, restartCount }) => restartCount === 1 && status === 'ready',
    )
    assert.equal(restarted.port, 3000)
  })
})

test('the restart policy applies to a service that ended while there was no server', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const { service } = sandbox
    const start = 'echo >> runs; until [ -e go ]; do sleep 0.01; done; rm go; exit 3'
    await service.start({ name: 'again', start, restartPolicy: 'on-failure', restartDelay: 0 })
    await service.start({ name: 'once', start: 'until [ -e end ]; do sleep 0.01; done; exit 4' })
    await service.start({ name: 'fine', start: 'until [ -e end ]; do sleep 0.01; done' })
    for (const name of ['again', 'once', 'fine']) await service.waitFor(name, 'running')
    await sandbox.exec.spawn('sleep 0.3; touch go end')
    await server.kill()
    await commandsEnded(server, '-e end')
    await server.start()
    assert.match((await service.waitFor('once', 'failed')).reason!, /exit code 4/)
    assert.equal((await service.waitFor('fine', 'stopped')).reason, undefined)
    const { restartCount } = await serviceUntil(sandbox, 'again', ({ restartCount }) => restartCount > 0)
    assert.equal(restartCount, 1)
    while ((await sandbox.files.read('runs')) !== '\n\n');
  })
})

test('a start that is cut at any moment runs once or is unknown, and what was acknowledged runs', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    for (const [index, moment] of MOMENTS.entries()) {
      const name = `s${index}`
      const start = `echo >> ${name}; exec sleep 1000`
      const begin = () => sandbox.service.start({ name, start, install: `echo >> ${name}-install` })
      const acknowledged = await crashDuring(server, moment, begin)
      const known = (await sandbox.service.list()).some((service) => service.name === name)
      if (acknowledged) assert.ok(known)
      if (!known) continue
      await sandbox.service.waitFor(name, 'running')
      await serviceUntil(sandbox, name, async () => await sandbox.files.exists(name))
      assert.equal(await sandbox.files.read(name), '\n')
      const running = await sandbox.exec.list({ status: 'running' })
      assert.equal(running.filter(({ service }) => service === name).length, 1)
    }
    await assertNoLeak(server)
  })
})

test('a stop, a restart and a delete that are cut at any moment are carried out by the next server', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const { service } = sandbox
    const start = 'trap "sleep 0.05; exit 0" TERM; while :; do sleep 0.01; done'
    for (const moment of MOMENTS) {
      const before = new Map<string, ServiceInfo>()
      for (const name of ['stop', 'restart', 'delete']) {
        // Comes after what the last crash left to do.
        await service.restart(name).catch((error) => {
          if (!hasCode(error, 'service_not_found')) throw error
          return service.start({ name, start })
        })
        before.set(name, await service.waitFor(name, 'running'))
      }
      const [stopped, restarted, deleted] =
        (await crashDuring(server, moment, async () => {
          const asked = [service.stop('stop'), service.restart('restart'), service.delete('delete')]
          return (await Promise.allSettled(asked)).map(({ status }) => status === 'fulfilled')
        })) ?? []
      if (stopped) assert.equal((await service.retrieve('stop')).status, 'stopped')
      if (restarted)
        assert.notEqual((await service.waitFor('restart', 'running')).pid, before.get('restart')!.pid)
      if (deleted)
        assert.deepEqual(
          (await service.list()).filter(({ name }) => name === 'delete'),
          [],
        )
      await settled(sandbox)
    }
    await assertNoLeak(server)
  })
})

test('after a reboot services start again unless they were stopped or should not', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const { service } = sandbox
    await service.start({
      name: 'web',
      install: 'echo >> installs',
      start: WEB,
      port: 3000,
      restartPolicy: 'always',
    })
    await service.start({ name: 'manual', start: 'sleep 1000', autostart: false })
    await service.start({ name: 'stopped', start: 'sleep 1000' })
    await service.start({ name: 'making', install: 'echo >> making; sleep 1000', start: 'true' })
    const { processId } = await service.waitFor('web')
    await service.waitFor('manual', 'running')
    await service.stop('stopped')
    await serviceUntil(sandbox, 'making', () => sandbox.files.exists('making'))
    await server.kill()
    killCells(slotOf(server.dataDir)!)
    await server.start()
    // Numbers of processes begin anew with the sandbox: the same one may be another's.
    await serviceUntil(sandbox, 'web', (now) => now.status === 'ready' && now.processId !== processId)
    assert.equal((await service.waitFor('web')).restartCount, 0)
    assert.equal(await sandbox.files.read('installs'), '\n')
    assert.equal((await service.retrieve('manual')).status, 'stopped')
    assert.equal((await service.retrieve('stopped')).status, 'stopped')
    assert.equal((await service.retrieve('making')).status, 'installing')
    await serviceUntil(sandbox, 'making', async () => (await sandbox.files.read('making')) === '\n\n')
    await service.restart('manual')
    await service.waitFor('manual', 'running')
    await assertNoLeak(server)
  })
})

test('services of a sandbox whose first process is killed have failed with it', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    await sandbox.service.start({ name: 'web', start: WEB, port: 3000, restartPolicy: 'always' })
    await sandbox.service.waitFor('web')
    killCells(slotOf(server.dataDir)!)
    const { reason } = await serviceUntil(sandbox, 'web', ({ status }) => status === 'failed')
    assert.equal(reason, 'The sandbox ended.')
    await assert.rejects(sandbox.service.restart('web'), { code: 'invalid_state' })
    await sandbox.kill()
    assert.deepEqual(await sandbox.service.list(), [])
    await assertNoLeak(server)
  })
})

async function serviceUntil(
  sandbox: Sandbox,
  name: string,
  isSo: (service: ServiceInfo) => boolean | Promise<boolean>,
): Promise<ServiceInfo> {
  let service: ServiceInfo | undefined
  await until(async () => {
    service = await sandbox.service.retrieve(name)
    return isSo(service)
  })
  return service!
}

/** Every service that is there has one process when it runs, and none when it does not. */
async function settled(sandbox: Sandbox): Promise<void> {
  await until(async () => {
    const running = await sandbox.exec.list({ status: 'running', limit: 1000 })
    const services = await sandbox.service.list()
    const count = (name: string) => running.filter((process) => process.service === name).length
    const isOwned = running.every(({ service }) => services.some(({ name }) => name === service))
    const isWhole = services.every(({ name, status }) => count(name) === (status === 'running' ? 1 : 0))
    return isOwned && isWhole
  })
}

/** There is no server to ask: its processes are seen from outside. */
async function commandsEnded({ dataDir }: TestServer, text: string): Promise<void> {
  const slot = slotOf(dataDir)
  await until(() => !tracesOf(dataDir, slot).processes.some((process) => process.includes(text)))
}
