import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { LIMITS, type ProcessInfo } from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'
import { freePort, isAlive, TestServices, takenPort } from '../support/services.ts'

describe('services', () => {
  let api: TestApi
  let services: TestServices
  before(async () => {
    api = await startTestApi()
    services = await TestServices.open(api)
  })
  after(() => api[Symbol.asyncDispose]())

  it('on the loopback become ready with their port, their pid and a URL that leads to them', async () => {
    const port = await freePort()
    const started = await services.start({ name: 'web', start: 'exec python3 web.py $PORT', port })
    assert.equal(started.status, 'starting')
    const { path, pid, processId, url, ...ready } = await services.reach('web', 'ready')
    assert.deepEqual([ready.port, path, ready.healthy], [port, services.sandbox.workdir, undefined])
    assert.ok(isAlive(pid!))
    assert.equal(await (await fetch(url!)).text(), 'hello')
    const process = await api.process(services.sandbox.id, processId!)
    assert.deepEqual([process.service, process.pid, process.status], ['web', pid, 'running'])
    await services.delete('web')
    assert.ok(!isAlive(pid!))
  })

  it('that listen nowhere are running, with all that was asked for and the defaults', async () => {
    await services.start({ name: 'quiet', start: 'sleep 600', environment: { A: '1' } })
    const { createdAt, updatedAt, pid, processId, ...rest } = await services.reach('quiet', 'running')
    assert.ok(pid && processId && createdAt <= updatedAt)
    assert.deepEqual(rest, {
      name: 'quiet',
      sandboxId: services.sandbox.id,
      start: 'sleep 600',
      path: services.sandbox.workdir,
      environment: { A: '1' },
      status: 'running',
      autostart: true,
      keepAwake: false,
      restartPolicy: 'never',
      maxRestarts: 0,
      restartCount: 0,
    })
    await services.delete('quiet')
  })

  it('are installed first, with output of its own', async () => {
    const gate = makeGate(services.sandbox)
    const install = 'echo installing; cat gate; pwd > where'
    mkdirSync(join(services.sandbox.workdir, 'app'))
    const started = await services.start({
      name: 'made',
      install: install.replaceAll('gate', '../gate'),
      start: 'cat where; exec sleep 600',
      path: 'app',
    })
    assert.deepEqual([started.status, started.originalPath], ['installing', 'app'])
    const { open } = await gate.reached()
    assert.deepEqual(
      [(await services.get('made')).status, (await services.get('made')).pid],
      ['installing', undefined],
    )
    await open()
    const { path, processId } = await services.reach('made', 'running')
    assert.equal(path, join(services.sandbox.workdir, 'app'))
    await services.until('made', () => services.read('app/where') !== '')
    assert.equal((await services.logs('made', '?install=true')).stdout, 'installing\n')
    let logs = await services.logs('made')
    while (logs.stdout === '') logs = await services.logs('made')
    assert.deepEqual([logs.stdout, logs.processId, logs.truncated], [`${path}\n`, processId, false])
    await services.delete('made')
  })

  it('whose install fails have failed with its exit code, and are installed again by a restart', async () => {
    await services.start({ name: 'broken', install: 'cat ready || exit 4', start: 'sleep 600' })
    const failed = await services.reach('broken', 'failed')
    assert.match(failed.reason!, /install command ended with exit code 4/)
    assert.deepEqual([(await services.logs('broken')).processId, failed.processId], [null, undefined])
    services.write('ready', 'yes')
    assert.equal((await services.verb('broken', 'restart')).status, 'installing')
    assert.equal((await services.reach('broken', 'running')).reason, undefined)
    services.write('ready', '')
    assert.equal((await services.verb('broken', 'restart')).status, 'running')
    await services.delete('broken')
  })

  it('take the port they like, and that is what is told', async () => {
    const [given, liked] = [await freePort(), await freePort()]
    await services.start({ name: 'stubborn', start: `exec python3 web.py ${liked}`, port: given })
    assert.equal((await services.reach('stubborn', 'ready')).port, liked)
    await services.delete('stubborn')
  })

  it('whose listener is a child of their command are ready too', async () => {
    const port = await freePort()
    await services.start({ name: 'child', start: 'python3 web.py $PORT & wait', port })
    assert.equal((await services.reach('child', 'ready')).port, port)
    await services.delete('child')
  })

  it('get the next free port when theirs is taken, unless it must be that one', async () => {
    await using taken = await takenPort()
    const start = 'echo port $PORT; exec python3 web.py $PORT'
    const error = await errorOf(
      await services.post({ name: 'strict', start, port: taken.port, strictPort: true }),
    )
    assert.deepEqual([error.status, error.code], [409, 'port_taken'])
    assert.deepEqual(await services.list(), [])
    const { port } = await services.start({ name: 'next', start, port: taken.port })
    assert.ok(port! > taken.port)
    assert.equal((await services.reach('next', 'ready')).port, port)
    await services.delete('next')
  })

  it('that want the same port at once get different ones', async () => {
    const port = await freePort()
    const names = ['a', 'b', 'c', 'd']
    const made = await Promise.all(names.map((name) => services.start({ name, start: 'sleep 600', port })))
    assert.equal(new Set(made.map((service) => service.port)).size, names.length)
    await Promise.all(names.map((name) => services.delete(name)))
  })

  it('find the environment of the sandbox, of their file, their own and their port, the later the stronger', async () => {
    services.write('app/.env.test', 'LAYER=file\nFILE="from file"\nMINE=file\nPORT=1\n')
    await services.start({
      name: 'env',
      start: 'echo "$ONLY,$LAYER,$FILE,$MINE,$PORT" > seen; exec sleep 600',
      path: 'app',
      envFile: '.env.test',
      environment: { MINE: 'inline' },
      port: 4321,
    })
    const { port } = await services.until('env', () => services.read('app/seen') !== '')
    assert.equal(services.read('app/seen'), `sandbox,file,from file,inline,${port}\n`)
    services.write('app/.env.test', 'LAYER=changed\n')
    services.write('app/seen', '')
    await services.verb('env', 'restart')
    await services.until('env', () => services.read('app/seen').includes('\n'))
    assert.equal(services.read('app/seen'), `sandbox,changed,,inline,${port}\n`)
    await services.delete('env')
  })

  it('without their env file, or as nobody, fail with the reason; install may make the file', async () => {
    await services.start({ name: 'bare', start: 'sleep 600', envFile: 'no.env', restartPolicy: 'always' })
    const { reason } = await services.reach('bare', 'failed')
    assert.match(reason!, /env file .*\/no\.env/)
    await services.start({ name: 'bare', start: 'sleep 600', user: 'nobody-of-that-name' })
    assert.match((await services.reach('bare', 'failed')).reason!, /nobody-of-that-name/)
    await services.start({
      name: 'bare',
      install: 'echo A=made > own.env',
      start: 'echo $A > own; sleep 600',
      envFile: 'own.env',
    })
    await until(() => services.read('own') === 'made\n')
    await services.delete('bare')
  })

  it('need a directory that is there', async () => {
    for (const path of ['none', 'web.py', 'web.py/x', '/none/at/all']) {
      const error = await errorOf(await services.post({ name: 'lost', start: 'true', path }))
      assert.deepEqual([error.status, error.code], [422, 'cwd_not_found'])
    }
  })

  it('that are not known, and names and options that cannot be, are errors', async () => {
    for (const [method, path] of [
      ['GET', 'none'],
      ['DELETE', 'none'],
      ['POST', 'none/stop'],
      ['POST', 'none/restart'],
      ['GET', 'none/logs'],
    ]) {
      assert.equal(
        (await errorOf(await api.call(method!, `${services.url}/${path}`))).code,
        'service_not_found',
      )
    }
    const bad = [
      { name: 'UP', start: 'true' },
      { name: '-a', start: 'true' },
      { name: 'a', start: '' },
      { name: 'a', start: 'true', port: 0 },
      { name: 'a', start: 'true', port: 65_536 },
      { name: 'a', start: 'true', restartPolicy: 'sometimes' },
      { name: 'a', start: 'true', maxRestarts: -1 },
      { name: 'a', start: 'true', restartDelay: '25h' },
      { name: 'a', start: 'true', healthCheck: { path: 'none' } },
      { name: 'a', start: 'true', other: 1 },
    ]
    for (const body of bad) {
      const error = await errorOf(await api.call('POST', services.url, body))
      assert.deepEqual([error.status, error.code], [400, 'bad_request'], JSON.stringify(body))
    }
  })

  it('have a name that is theirs until they have ended', async () => {
    const attempts = Array.from({ length: 6 }, (_, n) =>
      services.post({ name: 'one', start: `sleep 60${n}` }),
    )
    const statuses = (await Promise.all(attempts)).map(({ status }) => status)
    assert.deepEqual(statuses.toSorted(), [201, 409, 409, 409, 409, 409])
    await services.verb('one', 'stop')
    const replaced = await services.start({ name: 'one', start: 'sleep 700' })
    assert.deepEqual([replaced.start, (await services.list()).length], ['sleep 700', 1])
    await services.delete('one')
  })

  it('are waited for no longer than asked, and not when they have gone', async () => {
    await services.start({ name: 'slow', start: 'sleep 600' })
    await services.reach('slow', 'running')
    assert.equal((await services.get('slow', '?wait=20')).status, 'running')
    const waiting = api.call('GET', `${services.url}/slow?wait=60000`)
    await services.delete('slow')
    assert.equal((await errorOf(await waiting)).code, 'service_not_found')
  })

  it('are limited in number, and end with their sandbox', async () => {
    const other = await TestServices.open(api)
    const names = Array.from({ length: LIMITS.services }, (_, n) => `s${n}`)
    for (const name of names) await other.start({ name, start: 'sleep 600', restartPolicy: 'always' })
    const error = await errorOf(await other.post({ name: 'more', start: 'true' }))
    assert.deepEqual([error.status, error.code], [429, 'limit_exceeded'])
    await Promise.all(names.map((name) => other.reach(name, 'running')))
    const { processes } = (await (
      await api.call('GET', `/v1/sandboxes/${other.sandbox.id}/processes?status=running&limit=1000`)
    ).json()) as { processes: ProcessInfo[] }
    assert.equal(processes.length, LIMITS.services)
    await api.call('DELETE', `/v1/sandboxes/${other.sandbox.id}`)
    await until(() => processes.every(({ pid }) => !isAlive(pid!)))
    assert.deepEqual(await other.list(), [])
    assert.equal((await errorOf(await other.post({ name: 'late', start: 'true' }))).code, 'invalid_state')
    assert.doesNotMatch(api.logged.join(''), /"level":"error"/)
  })

  it('are described by so much and no more: every checkpoint keeps it', async () => {
    const other = await TestServices.open(api)
    const start = `sleep 600 # ${'x'.repeat(100_000)}`
    const names = Array.from({ length: Math.floor(LIMITS.servicesBytes / 101_000) }, (_, n) => `s${n}`)
    for (const name of names) await other.start({ name, start })
    const error = await errorOf(await other.post({ name: 'more', start }))
    assert.deepEqual([error.status, error.code], [429, 'limit_exceeded'])
    await other.delete('s0')
    await other.start({ name: 'more', start })
    await api.call('DELETE', `/v1/sandboxes/${other.sandbox.id}`)
  })

  it('do not delay a shutdown of the server, and neither do calls that wait for them', async () => {
    await using other = await startTestApi({ drainTimeoutMs: 600_000 })
    const theirs = await TestServices.open(other)
    await theirs.start({ name: 'slow', start: 'sleep 600' })
    await theirs.reach('slow', 'running')
    const waiting = theirs.get('slow', '?wait=60000')
    // Asked after it on the same server, and answered: the first one is there.
    await theirs.list()
    await other[Symbol.asyncDispose]()
    assert.equal((await waiting).status, 'running')
  })
})
