import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { freePort } from '../../server/test/support/services.ts'
import { Islet } from '../src/islet/islet.ts'
import type { Sandbox } from '../src/sandbox/sandbox.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await new Islet({ url: api.url, apiKey: TEST_KEY }).sandboxes.create()
})
after(() => api[Symbol.asyncDispose]())

test('a service is started, waited for, listed, restarted, stopped and deleted', async () => {
  const { service } = sandbox
  const port = await freePort()
  const start = 'echo up; exec python3 -m http.server $PORT --bind 127.0.0.1'
  const started = await service.start({ name: 'web', install: 'echo made', start, port, restartDelay: '2s' })
  assert.equal(started.status, 'installing')
  const ready = await service.waitFor('web')
  assert.deepEqual([ready.status, ready.port], ['ready', port])
  assert.deepEqual(await service.list(), [ready])
  assert.equal((await service.logs('web', { install: true })).stdout, 'made\n')
  assert.equal((await service.logs('web')).stdout, 'up\n')
  const { pid } = await service.restart('web')
  assert.ok(pid && pid !== ready.pid)
  assert.equal((await service.waitFor('web', 'running', { timeout: '30s' })).pid, pid)
  assert.equal((await service.stop('web')).status, 'stopped')
  await service.delete('web')
  await assert.rejects(service.retrieve('web'), { code: 'service_not_found' })
})

test('waiting ends with the service, with its time and with its signal', async () => {
  const { service } = sandbox
  await service.start({ name: 'short', start: 'exit 3' })
  await assert.rejects(service.waitFor('short'), { code: 'invalid_state', message: /failed.*exit code 3/ })
  assert.equal((await service.waitFor('short', 'failed')).status, 'failed')
  await service.start({ name: 'quiet', start: 'sleep 600' })
  await assert.rejects(service.waitFor('quiet', 'ready', { timeout: 50 }), { code: 'timeout' })
  const controller = new AbortController()
  const waiting = service.waitFor('quiet', 'ready', { signal: controller.signal })
  controller.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
  await assert.rejects(service.waitFor('quiet', 'ready', { timeout: 'soon' }), { code: 'bad_request' })
})

test('a name that is none does not lead elsewhere', async () => {
  for (const name of ['..', '.', 'a/b', '../../x'])
    await assert.rejects(sandbox.service.delete(name), { code: 'service_not_found' })
  assert.equal(await sandbox.isRunning(), true)
})
