import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi, until } from '../../server/test/support/server.ts'
import { hasCode, type PortSignalEvent, Sandbox, type SignalEvent, type SignalService } from '../src/index.ts'
import { startProxy } from './proxy.ts'

const URL_3000 = 'http://localhost:3000'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey: TEST_KEY })
})
after(() => api[Symbol.asyncDispose]())

/** All signals that a service hears, as they come. */
function heard(service: SignalService): SignalEvent[] {
  const events: SignalEvent[] = []
  service.on('signal', (event) => events.push(event))
  return events
}

test('signals start, tell their status, and stop', async () => {
  const { signals } = sandbox
  assert.equal((await signals.status()).status, 'stopped')
  const service = await signals.start()
  assert.deepEqual([service.isActive(), service.getStatus()], [true, 'active'])
  const status = await signals.status()
  assert.equal(status.status, 'active')
  assert.equal(service.getChannel(), status.channel)
  assert.equal(status.wsUrl, `${api.url.replace('http', 'ws')}${status.channel}`)
  await service.stop()
  assert.deepEqual([service.isActive(), service.getStatus()], [false, 'stopped'])
  assert.equal((await signals.status()).status, 'stopped')
  await service.stop()
  await signals.stop()
})

test('each kind of signal comes to its handlers, and all come to those of `signal`', async () => {
  const { signals } = sandbox
  const service = await signals.start()
  const ports: PortSignalEvent[] = []
  const errors: string[] = []
  const all = heard(service)
  service.on('port', (event) => ports.push(event))
  service.on('error', ({ message }) => errors.push(message))
  await signals.emitPort(3000, 'open', URL_3000)
  await signals.emitPort(3000, 'close', URL_3000)
  await signals.emitServerReady(3000, URL_3000)
  await signals.emitError('Database connection failed')
  await signals.emit('build.done', { files: [1, null] })
  await signals.emit('bare')
  await until(() => all.length === 6)
  assert.deepEqual(ports, [
    { signal: 'port', port: 3000, type: 'open', url: URL_3000 },
    { signal: 'port', port: 3000, type: 'close', url: URL_3000 },
    { signal: 'server-ready', port: 3000, url: URL_3000 },
  ])
  assert.deepEqual(errors, ['Database connection failed'])
  assert.deepEqual(all.slice(4), [{ signal: 'build.done', data: { files: [1, null] } }, { signal: 'bare' }])
  await service.stop()
})

test('several handlers are called, a failing one stops none, and one that was taken away is not', async (t) => {
  const logged = t.mock.method(console, 'error', () => {})
  const service = await sandbox.signals.start()
  const calls: string[] = []
  const removed = () => calls.push('removed')
  service.on('error', () => {
    throw new Error('mine')
  })
  service.on('error', async () => {
    throw new Error('mine, later')
  })
  service.on('error', removed)
  service.on('error', () => calls.push('last'))
  service.off('error', removed)
  service.off('port', removed)
  await sandbox.signals.emitError('x')
  await until(() => calls.length > 0 && logged.mock.callCount() === 2)
  assert.deepEqual(calls, ['last'])
  await service.stop()
})

test('what came before there was a handler comes to those registered together', async () => {
  const service = await sandbox.signals.start()
  const other = await sandbox.signals.start()
  const others = heard(other)
  await sandbox.signals.emit('early')
  await sandbox.signals.emitError('early too')
  await until(() => others.length === 2)
  const errors: string[] = []
  service.on('error', ({ message }) => errors.push(message))
  const all = heard(service)
  await until(() => all.length === 2)
  assert.deepEqual(errors, ['early too'])
  await service.stop()
})

test('stopping stops every instance', async () => {
  const one = await sandbox.signals.start()
  const other = await sandbox.signals.start()
  const ends: unknown[] = []
  other.on('stopped', (error) => ends.push(error))
  await one.stop()
  await until(() => !other.isActive())
  assert.deepEqual(ends, [undefined])
  const third = await sandbox.signals.start()
  await sandbox.signals.stop()
  await until(() => third.getStatus() === 'stopped')
})

test('an instance may leave without stopping the others', async () => {
  const one = await sandbox.signals.start()
  const other = await sandbox.signals.start()
  const events = heard(other)
  one.close()
  assert.equal(one.isActive(), false)
  await sandbox.signals.emit('still')
  await until(() => events.length === 1)
  await other.stop()
})

test('ports of real servers are told', async () => {
  const service = await sandbox.signals.start()
  const ports: PortSignalEvent[] = []
  service.on('port', (event) => ports.push(event))
  const server = await sandbox.exec.start('python3 -u -m http.server 0 --bind 127.0.0.1')
  await until(() => ports.length === 1)
  assert.equal(ports[0]!.type, 'open')
  const { port } = ports[0]!
  assert.ok((await sandbox.ports()).some((one) => one.port === port))
  await server.kill()
  await until(() => ports.length === 2)
  assert.deepEqual([ports[1]!.type, ports[1]!.port], ['close', port])
  await service.stop()
})

test('signals come again after the connection broke, and the gap is told', async () => {
  await using proxy = await startProxy(api.url)
  const own = await Sandbox.connect(sandbox.id, { url: proxy.url, apiKey: TEST_KEY })
  const service = await own.signals.start()
  const events = heard(service)
  let gaps = 0
  service.on('overflow', () => gaps++)
  proxy.cutSockets()
  await until(() => gaps === 1)
  await sandbox.signals.emit('again')
  await until(() => events.length === 1)
  assert.ok(service.isActive())
  await service.stop()
})

test('a sandbox that goes ends its signals, and one that is gone has none', async () => {
  const own = await Sandbox.create({ url: api.url, apiKey: TEST_KEY })
  const service = await own.signals.start()
  const ended = new Promise((done) => service.on('stopped', done))
  await own.kill()
  assert.ok(hasCode(await ended, 'sandbox_lost'))
  assert.equal(service.isActive(), false)
  await assert.rejects(own.signals.start(), (error) => hasCode(error, 'invalid_state'))
  await assert.rejects(own.signals.emit('x'), (error) => hasCode(error, 'invalid_state'))
})

test('a signal that is none is refused', async () => {
  await assert.rejects(sandbox.signals.emit('Not A Name'), (error) => hasCode(error, 'bad_request'))
  await assert.rejects(sandbox.signals.emit('port'), (error) => hasCode(error, 'bad_request'))
  await assert.rejects(sandbox.signals.emitPort(0, 'open', URL_3000), (error) =>
    hasCode(error, 'bad_request'),
  )
})
