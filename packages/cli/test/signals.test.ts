import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, type TestApi, until } from '../../server/test/support/server.ts'
import { SignalClient } from '../../server/test/support/signal-client.ts'
import { islet } from './islet.ts'

let api: TestApi
let id: string
before(async () => {
  api = await startTestApi()
  id = (await api.createSandbox({ name: 'dev' })).id
})
after(() => api[Symbol.asyncDispose]())

const run = (...words: string[]) => islet(words, { url: api.url })
const isStarted = async () => {
  const response = await api.call('GET', `/v1/sandboxes/${id}/signals/status`)
  return ((await response.json()) as { status: string }).status === 'active'
}
const stop = () => api.call('POST', `/v1/sandboxes/${id}/signals/stop`)

test('signals are sent, and printed by whoever listens until they are stopped', async () => {
  const listening = run('signals', 'dev')
  const json = run('signals', 'dev', '--json')
  await until(isStarted)
  const other = await SignalClient.open(`${api.url.replace('http', 'ws')}/v1/sandboxes/${id}/signals`)
  // All three are there once the server knows of three sockets.
  await until(() => api.logged.filter((line) => line.includes('socket opened')).length === 3)
  for (const words of [
    ['port', '3000', 'open'],
    ['server-ready', '3000', 'http://localhost:3000'],
    ['error', 'two', 'lines\nand \x1b[31mred'],
    ['build.done', '{"files": 3}'],
    ['bare'],
  ]) {
    assert.deepEqual(await run('signal', 'dev', ...words), { exitCode: 0, stdout: '', stderr: '' })
  }
  await until(() => other.events.length === 5)
  await stop()
  const { exitCode, stdout, stderr } = await listening
  assert.equal(exitCode, 0, stderr)
  assert.deepEqual(stdout.split('\n'), [
    'port 3000 open http://127.0.0.1:3000',
    'server-ready 3000 http://localhost:3000',
    'error two lines\\x0aand \\x1b[31mred',
    'build.done {"files":3}',
    'bare',
    '',
  ])
  assert.match(stderr, /Listening to sbx-/)
  const lines = (await json).stdout.trim().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    other.events,
  )
})

test('words that make no signal are a usage error', async () => {
  const wrong = [
    ['port', '3000', 'ajar'],
    ['server-ready'],
    ['error'],
    ['mine', 'not json'],
    ['mine', '{}', '{}'],
  ]
  for (const { exitCode, stderr } of await Promise.all(
    wrong.map((words) => run('signal', 'dev', ...words)),
  )) {
    assert.equal(exitCode, 2, stderr)
    assert.match(stderr, /hint:/)
  }
  const refused = await run('signal', 'dev', 'Upper')
  assert.equal(refused.exitCode, 1)
  assert.match(refused.stderr, /lower-case/)
})

test('ports are listed', async () => {
  const none = await run('ports', 'dev')
  assert.deepEqual([none.exitCode, none.stdout], [0, ''])
  assert.match(none.stderr, /Nothing listens/)
  const command = ['/usr/bin/python3', '-u', '-m', 'http.server', '0', '--bind', '127.0.0.1']
  const { pid } = await api.start(id, { command })
  let found: { port: number; address: string; uid: number; pid: number }[] = []
  await until(async () => {
    found = JSON.parse((await run('ports', 'dev', '--json')).stdout)
    return found.length === 1
  })
  assert.deepEqual([found[0]!.address, found[0]!.pid], ['127.0.0.1', pid])
  assert.match((await run('ports', 'dev')).stdout, /^PORT +ADDRESS +UID +PID\n\d+ +127\.0\.0\.1 /)
  assert.equal((await run('ports', 'dev', '-q')).stdout, `${found[0]!.port}\n`)
})
