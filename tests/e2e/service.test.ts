// The server as a service: its info, its log and its shutdown.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROUTES } from '@islet/contract'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite({ env: { ISLET_DEFAULT_RUNTIME: 'host', ISLET_LOG_LEVEL: 'debug' } })
const { server, islet } = suite

test('it reports its version and capabilities', async () => {
  const info = await islet.info()
  assert.deepEqual([info.engine, info.isolation, info.sandboxes], ['oci', 'namespace', 0])
  for (const name of ['wall', 'memoryLimit', 'cpuLimit', 'pidsLimit', 'network', 'users']) {
    assert.equal(info.capabilities[name], true, name)
  }
  for (const capability of Object.values(info.capabilities)) {
    if (capability !== true) assert.ok(capability.missing.length > 10, 'what is missing is a sentence')
  }
  assert.equal((await islet.health()).status, 'ok')
  assert.deepEqual(await (await fetch(`${server.url}/ready`)).json(), { ready: true })
})

test('it is the process that was started, with a small heap for what is young', () => {
  const words = readFileSync(`/proc/${server.pid}/cmdline`, 'utf8').split('\0')
  assert.ok(words.includes('--max-semi-space-size=8'), words.join(' '))
})

test('its description lists every route, and is open to all', async () => {
  const response = await fetch(`${server.url}/openapi.json`)
  assert.equal(response.status, 200)
  const document = (await response.json()) as {
    openapi: string
    paths: Record<string, Record<string, { responses: object; operationId?: string }>>
  }
  assert.match(document.openapi, /^3\.1/)
  for (const route of Object.values(ROUTES)) {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()]
    assert.ok(operation, `${route.method} ${route.path}`)
    assert.ok(Object.keys(operation.responses).length > 0)
  }
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1]!)
  for (const reference of new Set(references)) {
    const target = reference
      .split('/')
      .reduce<unknown>((at, part) => (at as Record<string, unknown>)?.[part], document)
    assert.ok(target, `${reference} is there`)
  }
})

test('its page of documentation is served', async () => {
  const response = await fetch(`${server.url}/docs`)
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type')!, /^text\/html/)
  assert.match(await response.text(), /\/v1\/sandboxes/)
})

test('its log has no secret in it', async () => {
  const secrets = {
    env: 'env-value-4b1d',
    exec: 'exec-env-88aa',
    file: 'file-content-19ef',
    command: 'command-text-77b0',
    stdin: 'stdin-text-c3d4',
    output: '',
    path: 'path-secret-55aa',
  }
  await using sandbox = await suite.create({
    env: { TOKEN: secrets.env },
    files: [{ path: 'a', content: secrets.file }],
  })
  await sandbox.runCommand(`: ${secrets.command}; cat`, { env: { T: secrets.exec } })
  await sandbox.exec.run('cat', { stdin: secrets.stdin })
  await sandbox.files.write(`${secrets.path}.txt`, secrets.file)
  await sandbox.files.read(`${secrets.path}.txt`)
  await sandbox.exec.run(['no-such', secrets.command]).catch(() => {})
  await server.post('/v1/sandboxes', {
    env: { TOKEN: secrets.env, 'bad=name': secrets.env },
    [secrets.env]: 1,
  })
  await server.fetch(`/v1/sandboxes?name=${secrets.path}`)
  await fetch(`${server.url}/v1/sandboxes`, { headers: { Authorization: 'Bearer wrong-key-0f0f' } })
  const log = server.output
  assert.match(log, /"msg":"request"/)
  for (const secret of [server.key, 'wrong-key-0f0f', ...Object.values(secrets)].filter(
    (text) => text !== '',
  )) {
    assert.ok(!log.includes(secret), `${secret} is in the log`)
  }
})

test('every line of its log is JSON with a level', () => {
  const lines = server.output.split('\n').filter((line) => line.startsWith('{'))
  assert.ok(lines.length > 5)
  for (const line of lines) assert.ok(JSON.parse(line).level, line)
})

test('a stop lets a running command end, turns new requests away, and keeps sandboxes', async () => {
  const sandbox = await suite.create()
  const counter = await sandbox.exec.spawn('while :; do echo x >> /tmp/count; sleep 0.05; done')
  const running = server.post(`/v1/sandboxes/${sandbox.id}/exec`, { command: 'sleep 1.5; echo finished' })
  // A connection that is busy with a request when the stop begins can still be used: for a clear answer.
  while ((await sandbox.exec.list({ status: 'running' })).length < 2) await sleep(10)
  const stopped = server.stop()
  const turnedAway = await answersDuringDrain()
  assert.deepEqual(await (await running).json().then((result) => result.stdout), 'finished\n')
  assert.equal(await stopped, 0)
  assert.ok(turnedAway, 'new requests are turned away')
  await server.start()
  const again = await server.islet().sandboxes.connect(sandbox.id)
  const read = async () => (await again.files.stat('/tmp/count')).sizeBytes
  const before = await read()
  while ((await read()) <= before) await sleep(20)
  assert.equal((await again.exec.get(counter.id)).status, 'running')
  await again.kill()
})

test('a connection without a request does not hold a stop up', async () => {
  const { port } = new URL(server.url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  await server.fetch('/v1/info')
  const stopped = server.stop()
  // The timeout for requests that run is 10 s; here none does.
  const first = await Promise.race([stopped, sleep(5000, 'still running')])
  socket.destroy()
  await stopped
  await server.start()
  assert.equal(first, 0)
})

/** Either `draining` or a refused connection; never a hang, never a success. */
async function answersDuringDrain(): Promise<boolean> {
  for (let tries = 0; tries < 50; tries++) {
    try {
      const response = await server.fetch('/v1/sandboxes', { signal: AbortSignal.timeout(5000) })
      if (response.status === 503) {
        assert.equal(((await response.json()) as { error: { code: string } }).error.code, 'draining')
        return true
      }
      await response.arrayBuffer()
    } catch (error) {
      assert.notEqual((error as Error).name, 'TimeoutError')
      return true
    }
    await sleep(20)
  }
  return false
}
