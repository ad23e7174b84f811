// Services behind the wall: their own network, users, limits and loopback.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sandbox } from 'islet'
import { needs } from '../support/programs.ts'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

needs('pgrep')

const suite = await startSuite()

const WEB = 'exec python3 -m http.server "$PORT" --bind 127.0.0.1'

test('a web server on the loopback of a sandbox without a network is ready, healthy and reached from outside', async () => {
  await using sandbox = await suite.create()
  await sandbox.files.write('site/index.html', 'from inside')
  const started = await sandbox.service.start({
    name: 'web',
    start: WEB,
    path: 'site',
    port: 3000,
    healthCheck: { path: '/', interval: 100 },
  })
  assert.equal(started.status, 'starting')
  const { port, url, healthy, path } = await sandbox.service.waitFor('web')
  assert.deepEqual([port, healthy, path], [3000, true, await say(sandbox, 'realpath site')])
  assert.equal(await (await fetch(url!)).text(), 'from inside')
  assert.equal(await say(sandbox, 'ps -o user= -C python3 | sort -u'), await say(sandbox, 'id -un'))
})

test('two sandboxes have the same port each for itself, and one sandbox has it once', async () => {
  await using one = await suite.create()
  await using two = await suite.create()
  const start = { name: 'web', start: WEB, port: 80 }
  await Promise.all([one, two].map((sandbox) => sandbox.service.start({ ...start, user: 'root' })))
  const ready = await Promise.all([one, two].map((sandbox) => sandbox.service.waitFor('web')))
  assert.deepEqual(
    ready.map(({ port }) => port),
    [80, 80],
  )
  await failsWith(one.service.start({ ...start, name: 'other', strictPort: true }), 'port_taken')
  await one.service.start({ ...start, name: 'other' })
  assert.equal((await one.service.waitFor('other')).port, 81)
})

test('a service on IPv6, and one that forks into the background, are seen', async () => {
  await using sandbox = await suite.create()
  await sandbox.service.start({
    name: 'six',
    start: 'exec python3 -m http.server 6000 --bind ::1',
    healthCheck: { path: '/', interval: 100 },
  })
  assert.equal((await sandbox.service.waitFor('six')).port, 6000)
  await sandbox.service.start({ name: 'forks', start: `(${WEB}) & sleep 1000`, port: 7000 })
  assert.equal((await sandbox.service.waitFor('forks')).port, 7000)
  await sandbox.service.stop('forks')
  assert.equal(await say(sandbox, 'pgrep -fc "[h]ttp.server 7000" || true'), '0')
})

test('a service that goes over the memory limit is restarted, and its reason names the limit', async () => {
  await using sandbox = await suite.create({ resources: { memory: '128Mi' } })
  await sandbox.service.start({
    name: 'greedy',
    start: 'exec python3 -c "bytearray(1 << 30)"',
    restartPolicy: 'on-failure',
    maxRestarts: 1,
    restartDelay: 0,
  })
  const { reason, restartCount } = await sandbox.service.waitFor('greedy', 'failed')
  assert.equal(restartCount, 1)
  assert.match(reason!, /restarted once.*memory limit/)
})

test('what is installed is there for the command, and both belong to the user', async () => {
  await using sandbox = await suite.create()
  await sandbox.files.write('.env.production', 'MODE=production\n')
  await sandbox.service.start({
    name: 'app',
    install: 'mkdir built && echo "#!/bin/sh" > built/app && chmod +x built/app && id -un >> owner',
    start: './built/app && echo "$MODE" >> owner && exec sleep 1000',
    envFile: '.env.production',
  })
  await sandbox.service.waitFor('app', 'running')
  const user = await say(sandbox, 'id -un')
  await lines(sandbox, 'owner', 2)
  assert.equal(await sandbox.files.read('owner'), `${user}\nproduction\n`)
})

test('a service comes back after everything inside was killed, and goes with its sandbox', async () => {
  const sandbox = await suite.create()
  const start = { name: 'web', start: WEB, port: 3000, restartPolicy: 'always', restartDelay: 0 } as const
  await sandbox.service.start(start)
  const { pid } = await sandbox.service.waitFor('web')
  await sandbox.exec.run('kill -9 -1', { user: 'root' })
  let back = await sandbox.service.retrieve('web')
  while (back.status !== 'ready' || back.restartCount === 0) back = await sandbox.service.retrieve('web')
  assert.deepEqual([back.restartCount, back.port, back.pid === pid], [1, 3000, false])
  await sandbox.kill()
  assert.deepEqual(await sandbox.service.list(), [])
})

async function lines(sandbox: Sandbox, path: string, count: number): Promise<void> {
  while ((await sandbox.files.read(path)).split('\n').length <= count);
}
