import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { SandboxDetail } from '@islet/sdk'
import { startTestApi, type TestApi, until } from '../../server/test/support/server.ts'
import { islet as run } from './islet.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
  await Promise.all(['dev', 'other'].map((name) => api.createSandbox({ name })))
})
after(() => api[Symbol.asyncDispose]())

const islet = (...words: string[]) => run(words, api)

async function info(name: string): Promise<SandboxDetail> {
  const answer = await api.call('GET', `/v1/sandboxes?status=all&name=${name}`)
  return ((await answer.json()) as { sandboxes: SandboxDetail[] }).sandboxes[0]!
}

test('several sandboxes are hibernated and woken at once, and ids are printed', async () => {
  const asleep = await islet('hibernate', 'dev', 'other')
  assert.match(asleep.stdout, /^sbx-\w+\nsbx-\w+\n$/)
  assert.deepEqual(
    [asleep.stderr, (await info('dev')).status, (await info('other')).status],
    ['', 'hibernated', 'hibernated'],
  )
  assert.match((await islet('ls')).stdout, /hibernated/)
  assert.match((await islet('info', 'dev')).stdout, /^status +hibernated$/m)
  const woken = JSON.parse((await islet('wake', 'dev', 'other', '--timeout', '30m', '--json')).stdout)
  assert.deepEqual(
    woken.map(({ status, timeouts }: SandboxDetail) => [status, timeouts.idleMs]),
    [
      ['running', 1_800_000],
      ['running', 1_800_000],
    ],
  )
})

test('create --reuse prints the sandbox that has the name, or makes it', async () => {
  const { id } = await info('dev')
  assert.equal((await islet('create', '--reuse', '--name', 'dev')).stdout, `${id}\n`)
  const made = await islet('create', '--reuse', '--name', 'reused', '--keep-awake')
  assert.equal((await islet('create', '--reuse', '--name', 'reused')).stdout, made.stdout)
  assert.match((await islet('info', 'reused')).stdout, /^awake +setting$/m)
  assert.match((await islet('ps', 'reused')).stderr, /Nothing runs.*\nAwake: setting\.$/m)
  await islet('update', 'reused', '--no-keep-awake')
  assert.match((await islet('info', 'reused')).stdout, /^awake +idle, sleeps in \d+m/m)
  const taken = await islet('create', '--name', 'reused')
  assert.deepEqual([taken.exitCode, taken.stdout], [1, ''])
  assert.match(taken.stderr, /has the name reused\.\nhint: .*--reuse/)
  const unnamed = await islet('create', '--reuse')
  assert.deepEqual([unnamed.exitCode, /--reuse needs a name/.test(unnamed.stderr)], [2, true])
  await islet('rm', 'reused')
})

test('one that cannot be woken keeps no other from being so, and ends with a hint', async () => {
  await islet('hibernate', 'other')
  const gone = await api.createSandbox({ name: 'gone' })
  await api.call('DELETE', `/v1/sandboxes/${gone.id}`)
  // One that runs already is no failure.
  const { exitCode, stdout, stderr } = await islet('wake', 'dev', gone.id, 'other')
  assert.equal(exitCode, 1)
  assert.equal(stdout, `${(await info('dev')).id}\n${(await info('other')).id}\n`)
  assert.match(stderr, /is stopped; wake would make it running\.\nhint: /)
  assert.equal((await info('other')).status, 'running')
  assert.equal((await islet('resume', 'dev')).exitCode, 0)
  const error = JSON.parse((await islet('resume', gone.id, '--json')).stderr)
  assert.deepEqual([error.error.code, typeof error.error.hint], ['invalid_state', 'string'])
})

test('pause says what the machine cannot do and what to do then', async () => {
  const { exitCode, stderr } = await islet('pause', 'dev')
  assert.equal(exitCode, 1)
  assert.match(stderr, /cannot freeze.*\nhint: Hibernate it/)
})

test('timeouts are shown and changed', async () => {
  assert.match(
    (await islet('timeout', 'dev', '--idle', '90m', '--on-idle', 'kill', '--paused', '24h')).stdout,
    /^ID +IDLE +ON IDLE +EXECUTION +PAUSED\nsbx-\w+ +1h30m +kill +never +1d\n$/,
  )
  assert.match((await islet('timeout', 'dev')).stdout, /\nsbx-\w+ +1h30m +kill/)
  const [changed] = JSON.parse(
    (await islet('timeout', 'dev', '--idle', 'never', '--execution', '2m', '--json')).stdout,
  )
  assert.deepEqual(changed.timeouts, {
    idleMs: 0,
    executionMs: 120_000,
    pausedMs: 86_400_000,
    onIdle: 'kill',
  })
  assert.match((await islet('info', 'dev')).stdout, /^timeouts +idle never; execution 2m; paused 1d$/m)
})

test('create and run take timeouts', async () => {
  const flags = [
    '--idle-timeout',
    '1s',
    '--execution-timeout',
    '5m',
    '--paused-timeout',
    '1h',
    '--on-idle',
    'kill',
  ]
  const id = (await islet('create', '--name', 'brief', ...flags)).stdout.trim()
  assert.deepEqual((await info('brief')).timeouts, {
    idleMs: 1000,
    executionMs: 300_000,
    pausedMs: 3_600_000,
    onIdle: 'kill',
  })
  await until(async () => (await info('brief')).status === 'stopped')
  assert.match((await islet('info', id)).stdout, /^status +stopped \(It was idle for 1 s\.\)$/m)
  const ran = await islet('run', '--idle-timeout', '1s', '--', 'sh', '-c', 'sleep 3; echo done')
  assert.equal(ran.stdout, 'done\n')
})

test('what a killed run leaves goes by itself', async () => {
  const killed = new AbortController()
  const words = ['run', '--name', 'left', '--idle-timeout', '2s', '--', 'sleep', '1000']
  const running = assert.rejects(run(words, { url: api.url, signal: killed.signal }), { name: 'AbortError' })
  // Its command runs, and is followed.
  await until(
    async () => (await info('left'))?.awake?.reasons.some(({ kind }) => kind === 'session') ?? false,
  )
  killed.abort()
  await running
  await until(async () => (await info('left')).status === 'stopped')
})

test('what cannot be meant ends with a hint', async () => {
  for (const words of [
    ['pause'],
    ['timeout'],
    ['timeout', 'dev', '--idle', 'soon'],
    ['timeout', 'dev', '--on-idle', 'x'],
  ]) {
    const { exitCode, stderr } = await islet(...words)
    assert.equal(exitCode, 2, words.join(' '))
    assert.match(stderr, /hint:/)
  }
  assert.match((await islet('wake', 'nobody')).stderr, /no sandbox nobody/)
})

test('a shell completes sandboxes, flags and actions', async () => {
  const complete = async (...words: string[]) => (await islet('__complete', '--', ...words)).stdout
  assert.match(await complete('hibernate', 'dev', 'oth'), /^other\t/m)
  assert.match(await complete('timeout', 'dev', '--on-idle', ''), /^hibernate\nkill\n$/)
  assert.match(await complete('create', '--idle'), /^--idle-timeout\t/m)
})
