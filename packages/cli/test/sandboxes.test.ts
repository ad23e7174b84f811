// Creating, suspending and waking sandboxes, their timeouts, tokens and events.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { SandboxDetail, SandboxEvent, SandboxToken } from '@islet/sdk'
import { startTestApi, type TestApi, until } from '../../server/test/support/server.ts'
import { islet as run } from './islet.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
  await Promise.all(['dev', 'other'].map((name) => api.createSandbox({ name })))
})
after(() => api[Symbol.asyncDispose]())

const islet = (...words: string[]) => run(words, api)
const done = async (...words: string[]) => {
  const { exitCode, stdout, stderr } = await islet(...words)
  assert.equal(exitCode, 0, stderr)
  return stdout
}

async function info(name: string): Promise<SandboxDetail> {
  const answer = await api.call('GET', `/v1/sandboxes?status=all&name=${name}`)
  return ((await answer.json()) as { sandboxes: SandboxDetail[] }).sandboxes[0]!
}

test('events are printed oldest first, one per line or as JSON', async () => {
  const lines = (await done('events', 'dev')).trim().split('\n')
  assert.match(lines[0]!, /^\d{4}-\d\d-\d\dT[\d:.]+Z {2}\d+ {2}created {2}runtime=host$/)
  assert.match(lines[1]!, / started$/)
  const events = JSON.parse(await done('events', 'dev', '--json')) as SandboxEvent[]
  assert.deepEqual(
    events.map(({ type }) => type),
    ['created', 'started'],
  )
  const last = JSON.parse(await done('events', 'dev', '--json', '-n', '1')) as SandboxEvent[]
  assert.deepEqual(last, events.slice(1))
  assert.equal(await done('events', 'dev', '--type', 'created', '--since', '1h'), `${lines[0]}\n`)
  assert.equal(await done('events', 'dev', '--since', events[1]!.id), '')
})

test('an event shows the command of a process word by word', async () => {
  await api.start((await info('dev')).id, { command: ['echo', 'a b', 'c'] })
  const line = await done('events', 'dev', '--type', 'process.started')
  assert.match(line, / {2}command=\["echo","a b","c"\]\n$/)
})

test('events --follow prints new events until the sandbox is removed', async () => {
  const { id } = await api.createSandbox({ name: 'short' })
  const following = islet('events', 'short', '--follow', '--json', '-n', '1')
  await until(() => api.logged.some((line) => line.includes(`/v1/sandboxes/${id}/events`)))
  await api.call('DELETE', `/v1/sandboxes/${id}`)
  const { exitCode, stdout, stderr } = await following
  assert.equal(exitCode, 0, stderr)
  const last = stdout.trim().split('\n').at(-1)!
  assert.equal((JSON.parse(last) as SandboxEvent).type, 'stopped')
  assert.match(await done('events', id), /started\n.*stopped\n$/)
})

test('hibernate and wake take several sandboxes and print their ids', async () => {
  const asleep = await islet('hibernate', 'dev', 'other')
  assert.match(asleep.stdout, /^sbx-\w+\nsbx-\w+\n$/)
  assert.deepEqual(
    [asleep.stderr, (await info('dev')).status, (await info('other')).status],
    ['', 'hibernated', 'hibernated'],
  )
  assert.match(await done('ls'), /hibernated/)
  assert.match(await done('info', 'dev'), /^status +hibernated$/m)
  const woken = JSON.parse(await done('wake', 'dev', 'other', '--timeout', '30m', '--json'))
  assert.deepEqual(
    woken.map(({ status, timeouts }: SandboxDetail) => [status, timeouts.idleMs]),
    [
      ['running', 1_800_000],
      ['running', 1_800_000],
    ],
  )
})

test('create --reuse prints the id of the sandbox with the name, or creates it', async () => {
  const { id } = await info('dev')
  assert.equal(await done('create', '--reuse', '--name', 'dev'), `${id}\n`)
  const made = await done('create', '--reuse', '--name', 'reused', '--keep-awake')
  assert.equal(await done('create', '--reuse', '--name', 'reused'), made)
  assert.match(await done('info', 'reused'), /^awake +setting$/m)
  assert.match((await islet('ps', 'reused')).stderr, /Nothing runs.*\nAwake: setting\.$/m)
  await done('update', 'reused', '--no-keep-awake')
  assert.match(await done('info', 'reused'), /^awake +idle, sleeps in \d+m/m)
  const taken = await islet('create', '--name', 'reused')
  assert.deepEqual([taken.exitCode, taken.stdout], [1, ''])
  assert.match(taken.stderr, /has the name reused\.\nhint: .*--reuse/)
  await done('rm', 'reused')
})

test('if one sandbox cannot be woken, the others are woken and the error has a hint', async () => {
  await done('hibernate', 'other')
  const gone = await api.createSandbox({ name: 'gone' })
  await api.call('DELETE', `/v1/sandboxes/${gone.id}`)
  // Waking a running sandbox is not a failure.
  const { exitCode, stdout, stderr } = await islet('wake', 'dev', gone.id, 'other')
  assert.equal(exitCode, 1)
  assert.equal(stdout, `${(await info('dev')).id}\n${(await info('other')).id}\n`)
  assert.match(stderr, /is stopped; wake would make it running\.\nhint: /)
  assert.equal((await info('other')).status, 'running')
  await done('resume', 'dev')
  const error = JSON.parse((await islet('resume', gone.id, '--json')).stderr)
  assert.deepEqual([error.error.code, typeof error.error.hint], ['invalid_state', 'string'])
})

test('pause tells that the machine cannot freeze and what to do instead', async () => {
  const { exitCode, stderr } = await islet('pause', 'dev')
  assert.equal(exitCode, 1)
  assert.match(stderr, /cannot freeze.*\nhint: Hibernate it/)
})

test('timeout shows and changes timeouts', async () => {
  assert.match(
    await done('timeout', 'dev', '--idle', '90m', '--on-idle', 'kill', '--paused', '24h'),
    /^ID +IDLE +ON IDLE +EXECUTION +PAUSED\nsbx-\w+ +1h30m +kill +never +1d\n$/,
  )
  assert.match(await done('timeout', 'dev'), /\nsbx-\w+ +1h30m +kill/)
  const [changed] = JSON.parse(await done('timeout', 'dev', '--idle', 'never', '--execution', '2m', '--json'))
  assert.deepEqual(changed.timeouts, {
    idleMs: 0,
    executionMs: 120_000,
    pausedMs: 86_400_000,
    onIdle: 'kill',
  })
  assert.match(await done('info', 'dev'), /^timeouts +idle never; execution 2m; paused 1d$/m)
})

test('create and run take timeouts', async () => {
  const flags = '--idle-timeout 1s --execution-timeout 5m --paused-timeout 1h --on-idle kill'.split(' ')
  const id = (await done('create', '--name', 'brief', ...flags)).trim()
  assert.deepEqual((await info('brief')).timeouts, {
    idleMs: 1000,
    executionMs: 300_000,
    pausedMs: 3_600_000,
    onIdle: 'kill',
  })
  await until(async () => (await info('brief')).status === 'stopped')
  assert.match(await done('info', id), /^status +stopped \(It was idle for 1 s\.\)$/m)
  assert.equal(await done('run', '--idle-timeout', '1s', '--', 'sh', '-c', 'sleep 3; echo done'), 'done\n')
})

test('if run is killed, the idle timeout removes its sandbox', async () => {
  const killed = new AbortController()
  const words = ['run', '--name', 'left', '--idle-timeout', '2s', '--', 'sleep', '1000']
  const running = assert.rejects(run(words, { url: api.url, signal: killed.signal }), { name: 'AbortError' })
  // The command runs, and `run` is attached to it.
  await until(
    async () => (await info('left'))?.awake?.reasons.some(({ kind }) => kind === 'session') ?? false,
  )
  killed.abort()
  await running
  await until(async () => (await info('left')).status === 'stopped')
})

test('token prints only the token on stdout', async () => {
  const { stdout, stderr } = await islet('token', 'dev', '--expires', '30m')
  assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  assert.match(stderr, /alone, until/)
  const headers = { Authorization: `Bearer ${stdout.trim()}` }
  assert.equal((await fetch(`${api.url}/v1/store`, { headers })).status, 200)
  const json = JSON.parse(await done('token', 'dev', '--json')) as SandboxToken
  assert.ok(Math.abs(Date.parse(json.expiresAt) - Date.now() - 3_600_000) < 60_000)
  assert.equal((await islet('token', 'dev', '--expires', '2d')).exitCode, 1)
})

test('token create, ls and rm manage session tokens', async () => {
  const { stdout, stderr } = await islet(
    'token',
    'create',
    'dev',
    '--description',
    'my app',
    '--expires',
    '30d',
  )
  assert.match(stdout, /^st_[\w-]{43}\n$/)
  const [id] = /^tok-\w+/.exec(stderr)!
  const headers = { Authorization: `Bearer ${stdout.trim()}` }
  const status = async () => (await fetch(`${api.url}/v1/store`, { headers })).status
  assert.equal(await status(), 200)
  const listed = await done('token', 'ls', 'dev')
  assert.match(listed, new RegExp(`^${id} .* my app$`, 'm'))
  assert.ok(!listed.includes(stdout.trim().slice(3)))
  const made = JSON.parse(await done('token', 'create', 'dev', '--json')) as { id: string; token: string }
  assert.match(made.token, /^st_/)
  const all = JSON.parse(await done('token', 'ls', 'dev', '--json')) as { id: string }[]
  assert.deepEqual(all.map((one) => one.id).sort(), [id, made.id].sort())
  const ambiguous = await islet('token', 'rm', 'dev', 'tok-')
  assert.equal(ambiguous.exitCode, 2)
  assert.match(ambiguous.stderr, /matches 2 session tokens/)
  assert.equal(await done('token', 'rm', 'dev', id.slice(0, 16)), `${id}\n`)
  assert.equal(await status(), 401)
  assert.match((await islet('token', 'rm', 'dev', id)).stderr, /no session token/)
  assert.equal((await islet('token', 'create', 'dev', '--expires', '400d')).exitCode, 1)
})

test('link prints a URL that signs a browser in', async () => {
  const { stdout, stderr } = await islet('link', 'dev', '--redirect', '/docs')
  assert.match(stderr, /works once/)
  const opened = await fetch(stdout.trim(), { redirect: 'manual' })
  assert.deepEqual([opened.status, opened.headers.get('location')], [303, '/docs'])
  const json = JSON.parse(await done('link', 'dev', '--json')) as { redirectUrl: string }
  assert.equal(json.redirectUrl, '/play/')
  assert.equal((await islet('link', 'dev', '--redirect', '//example.com')).exitCode, 1)
})
