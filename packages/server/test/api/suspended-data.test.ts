// The data services when a sandbox is hibernated and woken, or taken back to a checkpoint, where nothing that runs
// inside is kept.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type {
  CheckpointInfo,
  CreatedSandbox,
  ExecResult,
  OverlayInfo,
  RestoredSandbox,
  SandboxEvent,
  SignedUrl,
  TerminalCommandInfo,
  WatcherInfo,
} from '@islet/contract'
import { WebSocket } from 'ws'
import { errorOf, startTestApi, TEST_KEY, until } from '../support/server.ts'
import { freePort, TestServices } from '../support/services.ts'
import { SignalClient } from '../support/signal-client.ts'
import { WatchClient } from '../support/watch-client.ts'

const api = await startTestApi()
after(() => api[Symbol.asyncDispose]())
const sockets = api.url.replace('http', 'ws')

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await api.call(method, path, body)
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`)
  return (response.status === 204 ? undefined : await response.json()) as T
}

const at = ({ id }: { id: string }, path: string) => `/v1/sandboxes/${id}/${path}`
const hibernate = (sandbox: { id: string }) => ask('POST', at(sandbox, 'hibernate'))
const wake = (sandbox: { id: string }) => ask('POST', at(sandbox, 'wake'), {})

async function eventsOf(sandbox: { id: string }, types: string): Promise<SandboxEvent[]> {
  return (
    await ask<{ events: SandboxEvent[] }>(
      'GET',
      at(sandbox, `events?direction=asc&limit=1000&types=${types}`),
    )
  ).events
}

test('a command that is waited for is lost with a reason, and the next one wakes the sandbox', async () => {
  const sandbox = await api.createSandbox()
  const background = await api.start(sandbox.id, { command: 'sleep 1000' })
  const waited = api.call('POST', at(sandbox, 'exec'), { command: 'sleep 1000' })
  await until(async () => (await eventsOf(sandbox, 'process.started')).length === 2)
  await hibernate(sandbox)
  const lost = await errorOf(await waited)
  assert.equal(lost.code, 'sandbox_lost')
  assert.match(lost.message, /hibernated/)
  const { status, outcome, reason } = await api.process(sandbox.id, background.id)
  assert.deepEqual([status, outcome], ['lost', 'failed'])
  assert.match(reason!, /hibernated/)
  assert.equal((await eventsOf(sandbox, 'process.lost')).length, 2)
  const response = await api.call('POST', at(sandbox, 'exec'), { command: 'echo again' })
  assert.equal(response.headers.get('islet-auto-resumed'), 'true')
  const { stdout, autoResumed } = (await response.json()) as { stdout: string; autoResumed: boolean }
  assert.deepEqual([stdout, autoResumed], ['again\n', true])
})

test('the handshake of a WebSocket says that its sandbox was woken', async () => {
  const sandbox = await api.createSandbox()
  for (const expected of [undefined, 'true', undefined]) {
    if (expected) await hibernate(sandbox)
    const socket = new WebSocket(sockets + at(sandbox, 'signals'), {
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })
    const [response] = (await once(socket, 'upgrade')) as [IncomingMessage]
    assert.equal(response.headers['islet-auto-resumed'], expected)
    socket.terminate()
    await once(socket, 'close')
  }
})

test('waiting for a process never wakes its sandbox, a signed URL does', async () => {
  const sandbox = await api.createSandbox({ files: [{ path: 'a', content: 'from a file' }] })
  const { id } = await api.start(sandbox.id, { command: 'sleep 1000' })
  const signed = await ask<SignedUrl>('POST', at(sandbox, 'files/sign'), {
    path: 'a',
    method: 'GET',
    expiresIn: '1m',
  })
  await hibernate(sandbox)
  const { status } = await ask<{ status: string }>('GET', at(sandbox, `processes/${id}?wait=100`))
  assert.equal(status, 'lost')
  assert.equal((await ask<CreatedSandbox>('GET', `/v1/sandboxes/${sandbox.id}`)).status, 'hibernated')
  const response = await fetch(signed.url)
  assert.equal(response.headers.get('islet-auto-resumed'), 'true')
  assert.equal(await response.text(), 'from a file')
})

test('services that were wanted run again after a wake, others stay stopped, and events tell all of it', async () => {
  const services = await TestServices.open(api)
  const { sandbox } = services
  const port = await freePort()
  await services.start({ name: 'web', start: `exec python3 web.py ${port}` })
  await services.start({ name: 'manual', start: 'exec sleep 1000', autostart: false })
  await services.start({ name: 'down', start: 'exec sleep 1000' })
  const before = await services.reach('web', 'ready')
  await services.reach('manual', 'running')
  await services.reach('down', 'running')
  await services.verb('down', 'stop')
  await hibernate(sandbox)
  const asleep = await services.list()
  assert.deepEqual(
    asleep.map(({ name, status }) => [name, status]),
    [
      ['web', 'stopped'],
      ['manual', 'stopped'],
      ['down', 'stopped'],
    ],
  )
  assert.match(asleep[0]!.reason!, /hibernated/)
  await wake(sandbox)
  const after = await services.reach('web', 'ready')
  assert.notEqual(after.processId, before.processId)
  assert.equal((await services.get('manual')).status, 'stopped')
  assert.equal((await services.get('down')).status, 'stopped')
  const told = await eventsOf(sandbox, 'service.started,service.ready,service.stopped,service.failed')
  assert.deepEqual(
    told.filter(({ data }) => data.name === 'web').map(({ type }) => type),
    ['service.started', 'service.ready', 'service.stopped', 'service.started', 'service.ready'],
  )
})

test('a restore says of every service what became of it', async () => {
  const services = await TestServices.open(api)
  const { sandbox } = services
  const port = await freePort()
  services.write('mode', 'stay')
  await services.start({ name: 'web', start: `exec python3 web.py ${port}` })
  await services.start({ name: 'worker', start: 'exec sleep 1000' })
  await services.start({ name: 'broken', start: 'test "$(cat mode)" = stay && exec sleep 1000; exit 3' })
  await services.start({ name: 'manual', start: 'exec sleep 1000', autostart: false })
  await services.reach('web', 'ready')
  for (const name of ['worker', 'broken', 'manual']) await services.reach(name, 'running')
  // The files of the checkpoint make one of them fail at once.
  services.write('mode', 'go')
  const checkpoint = await ask<CheckpointInfo>('POST', at(sandbox, 'checkpoints'), { name: 'one' })
  await services.start({ name: 'later', start: 'exec sleep 1000' })
  const restored = await ask<RestoredSandbox>('POST', at(sandbox, `checkpoints/${checkpoint.id}/restore`))
  assert.deepEqual(restored.services.map(({ name, outcome }) => [name, outcome]).sort(), [
    ['broken', 'failed'],
    ['manual', 'stopped'],
    ['web', 'started'],
    ['worker', 'started'],
  ])
  assert.match(restored.services.find(({ name }) => name === 'broken')!.reason!, /exit code 3/)
  await services.reach('web', 'ready')
})

test('a client of a watcher stays over hibernation and restore, and sees what happens afterwards', async () => {
  const sandbox = await api.createSandbox({ files: [{ path: 'src/a', content: '' }] })
  const watcher = await ask<WatcherInfo>('POST', at(sandbox, 'watchers'), { path: 'src' })
  const client = await WatchClient.open(sockets + watcher.channel, watcher.path)
  const checkpoint = await ask<CheckpointInfo>('POST', at(sandbox, 'checkpoints'), { name: 'one' })
  const write = (name: string) => ask('PUT', at(sandbox, `files?path=src/${name}`), 'x')
  await write('before')
  await client.until('add before')

  await hibernate(sandbox)
  await wake(sandbox)
  await until(() => client.types.includes('overflow'))
  await write('woken')
  await client.until('add woken')

  await ask('POST', at(sandbox, `checkpoints/${checkpoint.id}/restore`))
  await until(() => client.types.filter((type) => type === 'overflow').length === 2)
  const { path, status } = await ask<WatcherInfo>('GET', at(sandbox, `watchers/${watcher.id}`))
  assert.equal(status, 'active')
  await write('restored')
  await until(() => client.changes.some((change) => change.path === join(path, 'restored')))
  assert.deepEqual(await ask('GET', at(sandbox, 'files/list?path=src')).then(namesOf), ['a', 'restored'])
  client.socket.close()
})

test('listeners of signals get ports again after a wake', async () => {
  const services = await TestServices.open(api)
  const { sandbox } = services
  const port = await freePort()
  const listener = await SignalClient.open(`${sockets}${at(sandbox, 'signals')}`)
  await services.start({ name: 'web', start: `exec python3 web.py ${port}` })
  await until(() => listener.port(port).length === 1)
  await hibernate(sandbox)
  await wake(sandbox)
  await until(() => listener.port(port).at(-1)?.type === 'open' && listener.port(port).length === 3)
  assert.deepEqual(
    listener.port(port).map(({ type }) => type),
    ['open', 'close', 'open'],
  )
  listener.socket.close()
})

test('an overlay that was being copied is complete after the wake', async () => {
  const sandbox = await api.createSandbox()
  const source = join(sandbox.workdir, 'template')
  await ask('POST', at(sandbox, 'exec'), {
    command:
      'mkdir -p template && cd template && for d in $(seq 40); do mkdir $d; touch $d/$(seq -s " $d/" 50); done',
  })
  const overlay = await ask<OverlayInfo>('POST', at(sandbox, 'overlays'), { source, target: 'copy' })
  await hibernate(sandbox)
  const asleep = await ask<OverlayInfo>('GET', at(sandbox, `overlays/${overlay.id}`))
  assert.notEqual(asleep.copyStatus, 'failed')
  await wake(sandbox)
  const get = () => ask<OverlayInfo>('GET', at(sandbox, `overlays/${overlay.id}`))
  await until(async () => (await get()).copyStatus === 'complete')
})

test('a command or job that names no timeout has that of its sandbox, and 0 is none', async () => {
  const sandbox = await api.createSandbox({ timeout: { execution: 300 } })
  const run = async (body: object) => {
    const { timedOut, outcome, exitCode } = await ask<ExecResult>('POST', at(sandbox, 'exec'), body)
    return { timedOut, outcome, exitCode }
  }
  assert.deepEqual(await run({ command: 'sleep 1000' }), {
    timedOut: true,
    outcome: 'timeout',
    exitCode: 124,
  })
  assert.equal((await run({ command: 'sleep 0.5', timeout: 0 })).exitCode, 0)
  assert.equal((await run({ command: 'sleep 0.5', timeout: '1m' })).exitCode, 0)
  const code = await ask<{ timedOut: boolean }>('POST', at(sandbox, 'code'), {
    language: 'shell',
    code: 'sleep 1000',
  })
  assert.equal(code.timedOut, true)
  const terminal = await ask<{ id: string }>('POST', at(sandbox, 'terminals'), {})
  const commands = at(sandbox, `terminals/${terminal.id}/commands`)
  const command = await ask<TerminalCommandInfo>('POST', commands, { command: 'sleep 1000' })
  assert.deepEqual([command.exitCode, command.outcome], [124, 'timeout'])
  const inBackground = async (body: object) => {
    const { id } = await api.start(sandbox.id, { command: 'sleep 0.6', ...body })
    const path = at(sandbox, `processes/${id}?wait=60000`)
    return (await ask<{ result: { exitCode: number } }>('GET', path)).result.exitCode
  }
  assert.equal(await inBackground({ command: 'sleep 1000' }), 124)
  assert.equal(await inBackground({ timeout: 0 }), 0)
  assert.equal(await inBackground({ terminal: { cols: 80, rows: 24 } }), 0)
})

test('the events of a process say what it was and how it ended, and nothing of its environment', async () => {
  const sandbox = await api.createSandbox({ env: { A: 'sandbox-secret' } })
  await ask('POST', at(sandbox, 'exec'), { command: `: ${'x'.repeat(500)}; exit 3`, env: { B: 'secret' } })
  await errorOf(await api.call('POST', at(sandbox, 'exec'), { command: ['no-such-program'] }))
  const events = await eventsOf(sandbox, 'process.started,process.exited,process.lost')
  assert.deepEqual(
    events.map(({ type }) => type),
    ['process.started', 'process.exited', 'process.started', 'process.lost'],
  )
  assert.equal((events[0]!.data.command as string).length, 200)
  const { durationMs, ...ended } = events[1]!.data
  assert.equal(typeof durationMs, 'number')
  const { id } = events[0]!.data
  assert.deepEqual(ended, { id, exitCode: 3, signal: null, timedOut: false, oom: false })
  assert.match(String(events[3]!.data.reason), /never ran/)
  assert.ok(!JSON.stringify(events).includes('secret'))
})

test('a command whose client went away in the middle of a hibernation leaves nothing behind', async () => {
  const sandbox = await api.createSandbox()
  const left = new AbortController()
  const waited = api
    .call('POST', at(sandbox, 'exec'), { command: 'sleep 1000' }, { signal: left.signal })
    .catch(() => undefined)
  await until(async () => (await eventsOf(sandbox, 'process.started')).length === 1)
  const asleep = hibernate(sandbox)
  left.abort()
  await Promise.all([asleep, waited])
  await wake(sandbox)
  const { processes } = await ask<{ processes: unknown[] }>('GET', at(sandbox, 'processes?status=running'))
  assert.deepEqual(processes, [])
})

function namesOf(list: unknown): string[] {
  return (list as { entries: { path: string }[] }).entries.map(({ path }) => path.split('/').at(-1)!).sort()
}
