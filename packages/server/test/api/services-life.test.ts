import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import type { ServiceInfo } from '@islet/contract'
import { WebSocket } from 'ws'
import { makeGate } from '../support/barrier.ts'
import { AUTHORIZED } from '../support/client.ts'
import { startTestApi, type TestApi, until } from '../support/server.ts'
import { freePort, isAlive, TestServices } from '../support/services.ts'

let api: TestApi
let services: TestServices
before(async () => {
  api = await startTestApi()
  services = await TestServices.open(api)
})
after(() => api[Symbol.asyncDispose]())

/** The lines of a file that grows, each time another one when a command begins with `echo >> FILE`. */
const runs = (file: string): number => services.read(file).split('\n').length - 1

describe('a service whose command ends', () => {
  it('is stopped after a success and has failed otherwise, with how it ended', async () => {
    const cases: [string, ServiceInfo['status'], RegExp | undefined][] = [
      ['true', 'stopped', undefined],
      ['exit 3', 'failed', /exit code 3/],
      ['kill -KILL $$', 'failed', /SIGKILL/],
    ]
    for (const [start, status, reason] of cases) {
      await services.start({ name: 'short', start })
      const ended = await services.reach('short', status)
      assert.deepEqual([ended.pid, ended.port, ended.restartCount], [undefined, undefined, 0])
      if (reason) assert.match(ended.reason!, reason)
      else assert.equal(ended.reason, undefined)
    }
    await services.delete('short')
  })

  it('is restarted on failure as often as allowed, and install is not run again', async () => {
    await services.start({
      name: 'flaky',
      install: 'echo >> installs',
      start: 'echo >> tries; exit 7',
      restartPolicy: 'on-failure',
      maxRestarts: 2,
      restartDelay: 0,
    })
    const { restartCount, reason } = await services.reach('flaky', 'failed')
    assert.deepEqual([restartCount, runs('tries'), runs('installs')], [2, 3, 1])
    assert.match(reason!, /restarted 2 times.*exit code 7/)
    await services.delete('flaky')
  })

  it('with success is not a failure to restart', async () => {
    await services.start({
      name: 'once',
      start: 'echo >> once',
      restartPolicy: 'on-failure',
      restartDelay: 0,
    })
    assert.deepEqual([(await services.reach('once', 'stopped')).restartCount, runs('once')], [0, 1])
    await services.delete('once')
  })

  it('is restarted always, until it is stopped', async () => {
    await services.start({
      name: 'eager',
      start: 'echo >> eager',
      restartPolicy: 'always',
      restartDelay: 0,
      maxRestarts: 0,
    })
    await services.until('eager', ({ restartCount }) => restartCount >= 3)
    const stopped = await services.verb('eager', 'stop')
    assert.equal(stopped.status, 'stopped')
    assert.ok(stopped.restartCount >= 3)
    const before = runs('eager')
    await services.start({ name: 'other', start: 'true', restartPolicy: 'always', restartDelay: 0 })
    await services.until('other', ({ restartCount }) => restartCount >= 3)
    assert.equal(runs('eager'), before)
    await services.delete('other')
    await services.delete('eager')
  })

  it('leaves nothing behind that could hold its port', async () => {
    const port = await freePort()
    const start = "trap '' TERM; python3 web.py $PORT & echo $! >> children; cat stay && exit 1"
    makeGate(services.sandbox, 'stay')
    await services.start({
      name: 'parent',
      start,
      port,
      restartPolicy: 'always',
      restartDelay: 0,
      stopTimeout: 100,
    })
    await services.reach('parent', 'ready')
    services.write('stay', '')
    const again = await services.until('parent', (one) => one.restartCount === 1 && one.status === 'ready')
    assert.equal(again.port, port)
    const [first, second] = services.read('children').trim().split('\n').map(Number)
    assert.ok(!isAlive(first!) && isAlive(second!))
    await services.delete('parent')
    assert.ok(!isAlive(second!))
  })
})

describe('stopping a service', () => {
  it('asks first, and answers when it has ended', async () => {
    const start = 'trap "echo bye > bye; exit 0" TERM; echo up > up; while :; do sleep 0.01; done'
    await services.start({ name: 'polite', start, restartPolicy: 'always' })
    await until(() => services.read('up') !== '')
    const { pid } = await services.reach('polite', 'running')
    const stopped = await services.verb('polite', 'stop')
    assert.deepEqual([stopped.status, stopped.reason, services.read('bye')], ['stopped', undefined, 'bye\n'])
    assert.ok(!isAlive(pid!))
    assert.equal((await services.verb('polite', 'stop')).status, 'stopped')
    await services.delete('polite')
  })

  it('kills one that does not listen, after its time', async () => {
    const start = 'trap "" TERM; sleep 600 & echo $! > deaf; while :; do sleep 0.01; done'
    await services.start({ name: 'deaf', start, stopTimeout: 150 })
    await until(() => services.read('deaf') !== '')
    const { pid, processId } = await services.reach('deaf', 'running')
    assert.equal((await services.verb('deaf', 'stop')).status, 'stopped')
    assert.ok(![pid!, Number(services.read('deaf'))].some(isAlive))
    assert.equal((await api.process(services.sandbox.id, processId!)).result?.signal, 'SIGKILL')
    await services.delete('deaf')
  })

  it('ends its install command', async () => {
    await services.start({ name: 'slow', install: 'echo $$ > installer; sleep 600', start: 'true' })
    await until(() => services.read('installer') !== '')
    assert.equal((await services.verb('slow', 'stop')).status, 'stopped')
    assert.ok(!isAlive(Number(services.read('installer'))))
    assert.equal((await services.verb('slow', 'restart')).status, 'installing')
    await services.delete('slow')
  })

  it('is not answered by the next restart, however long that waits', async () => {
    await services.start({ name: 'wait', start: 'exit 1', restartPolicy: 'always', restartDelay: '1h' })
    const waiting = await services.until('wait', ({ restartCount }) => restartCount === 1)
    assert.equal(waiting.status, 'starting')
    assert.equal((await services.verb('wait', 'stop')).status, 'stopped')
    await services.delete('wait')
  })
})

describe('restarting a service', () => {
  it('gives it another process and counts from nought', async () => {
    await services.start({
      name: 'again',
      start: '[ -e steady ] || exit 1; exec sleep 600',
      restartPolicy: 'on-failure',
      restartDelay: 0,
    })
    await services.until('again', ({ restartCount }) => restartCount > 0)
    services.write('steady', '')
    const before = await services.reach('again', 'running')
    const answer = await services.verb('again', 'restart')
    assert.deepEqual([answer.status, answer.restartCount], ['running', 0])
    const { pid, processId } = await services.reach('again', 'running')
    assert.ok(isAlive(pid!) && !isAlive(before.pid!) && processId !== before.processId)
    await services.delete('again')
  })

  it('begins a stopped and a failed one too', async () => {
    await services.start({ name: 'back', start: '[ -e ok ] || exit 1; exec sleep 600' })
    await services.reach('back', 'failed')
    services.write('ok', '')
    await services.verb('back', 'restart')
    await services.reach('back', 'running')
    await services.verb('back', 'stop')
    await services.verb('back', 'restart')
    await services.reach('back', 'running')
    await services.delete('back')
  })

  it('and stopping, starting and deleting it at once end in one of these', async () => {
    const start = { name: 'busy', start: 'echo $$ >> busy; exec sleep 600' }
    for (let round = 0; round < 5; round++) {
      await services.post(start)
      const verbs = ['restart', 'stop', 'restart', 'delete', 'stop', 'restart', 'start']
      const answers = await Promise.all(
        verbs.map((verb) =>
          verb === 'start'
            ? services.post(start)
            : verb === 'delete'
              ? api.call('DELETE', `${services.url}/busy`)
              : api.call('POST', `${services.url}/busy/${verb}`),
        ),
      )
      assert.ok(answers.every(({ status }) => [200, 201, 204, 404, 409].includes(status)))
      const [left] = await services.list()
      if (left) await services.delete('busy')
      const pids = services.read('busy').split('\n').filter(Boolean).map(Number)
      assert.ok(!pids.some(isAlive))
    }
  })
})

describe('a health check', () => {
  it('decides what is ready, and follows it down and up', async () => {
    const port = await freePort()
    services.write('status', '503')
    await services.start({
      name: 'web',
      start: 'exec python3 web.py $PORT',
      port,
      healthCheck: { path: '/health', interval: 50, timeout: 5000 },
    })
    const down = await services.until('web', ({ healthy }) => healthy === false)
    assert.deepEqual([down.status, down.port, down.healthStatus], ['running', port, 'HTTP 503'])
    services.write('status', '302')
    const up = await services.reach('web', 'ready')
    assert.deepEqual([up.healthy, up.healthStatus, up.url === undefined], [true, 'HTTP 302', false])
    services.write('status', '404')
    const again = await services.until('web', ({ healthy }) => healthy === false)
    assert.deepEqual([again.status, again.healthStatus, again.pid], ['running', 'HTTP 404', up.pid])
    services.write('status', '200')
    assert.equal((await services.reach('web', 'ready')).healthy, true)
    await services.delete('web')
  })

  it('that gets no answer in time has failed', async () => {
    services.write('status', '0')
    const healthCheck = { path: '/', interval: 50, timeout: 100 }
    await services.start({
      name: 'mute',
      start: 'exec python3 web.py $PORT',
      port: await freePort(),
      healthCheck,
    })
    const { healthStatus } = await services.until('mute', ({ healthy }) => healthy === false)
    assert.match(healthStatus!, /within 100 ms/)
    services.write('status', '200')
    await services.reach('mute', 'ready')
    await services.delete('mute')
  })

  it('waits for its delay and for a port, and what is no HTTP is not healthy', async () => {
    await services.start({ name: 'none', start: 'sleep 600', healthCheck: { path: '/', interval: 50 } })
    await services.reach('none', 'running')
    const running = await services.get('none', '?wait=300')
    assert.deepEqual([running.status, running.healthy], ['running', undefined])
    await services.delete('none')
    const port = await freePort()
    const lines = [
      'import socket, sys',
      's = socket.create_server(("127.0.0.1", int(sys.argv[1])))',
      'while True:',
      '  c, _ = s.accept()',
      '  try: c.sendall(b"hello\\n" * 100000)',
      '  except OSError: pass',
      '  c.close()',
    ]
    services.write('odd.py', lines.join('\n'))
    const start = 'exec python3 odd.py $PORT'
    await services.start({ name: 'odd', start, port, healthCheck: { path: '/', interval: 50 } })
    const odd = await services.until('odd', ({ healthy }) => healthy === false)
    assert.ok(odd.healthStatus)
    await services.verb('odd', 'stop')
    await services.start({ name: 'odd', start, port, healthCheck: { path: '/', delay: '1h' } })
    await services.until('odd', (service) => service.port === port && service.pid !== undefined)
    assert.equal((await services.get('odd', '?wait=1500')).healthy, undefined)
    await services.delete('odd')
  })
})

describe('a service that is ready', () => {
  it('is sent to all listeners of signals', async () => {
    const port = await freePort()
    const socket = new WebSocket(`${api.url}/v1/sandboxes/${services.sandbox.id}/signals`, AUTHORIZED)
    const seen: { type: string; event?: { signal: string; port?: number; url?: string } }[] = []
    socket.on('message', (data) => void seen.push(JSON.parse(String(data))))
    await once(socket, 'message')
    assert.equal(seen[0]?.type, 'start')
    services.write('status', '200')
    await services.start({ name: 'loud', start: 'exec python3 web.py $PORT', port })
    const { url } = await services.reach('loud', 'ready')
    await until(() => seen.some(({ event }) => event?.signal === 'server-ready'))
    const told = seen.find(({ event }) => event?.signal === 'server-ready')
    assert.deepEqual(told?.event, { signal: 'server-ready', port, url })
    socket.close()
    await services.delete('loud')
  })

  it('is running again when it stops to listen', async () => {
    const port = await freePort()
    const script = [
      'import os, signal, socket, sys, time',
      's = socket.create_server(("127.0.0.1", int(sys.argv[1])))',
      'signal.signal(signal.SIGUSR1, lambda *_: s.close())',
      'while True: time.sleep(60)',
    ].join('\n')
    services.write('shy.py', script)
    await services.start({ name: 'shy', start: 'exec python3 shy.py $PORT', port })
    const { processId } = await services.reach('shy', 'ready')
    const at = `/v1/sandboxes/${services.sandbox.id}/processes/${processId}/signal`
    assert.equal((await api.call('POST', at, { signal: 'SIGUSR1' })).status, 204)
    const after = await services.until('shy', ({ status }) => status === 'running')
    assert.equal(after.url, undefined)
    await services.delete('shy')
  })
})
