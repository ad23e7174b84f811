// A sandbox that is frozen, paused or hibernated, and the clients that are connected to it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import { WebSocket } from 'ws'
import { until } from '../coming-from/until.ts'
import { withServer } from '../faults/crash.ts'
import { needs } from '../support/programs.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

needs('curl')

const suite = await startSuite()
const { server } = suite

/** Long enough for health checks, polls and timeouts of the server to go wrong in. */
const STILL_MS = 3000
const COUNTER = 'i=0; while :; do i=$((i+1)); echo $i > count.new; mv count.new count; sleep 0.02; done'
const WEB = 'exec python3 -m http.server "$PORT" --bind 127.0.0.1'

const STANDS_STILL = {
  pause: { begin: (sandbox: Sandbox) => sandbox.pause(), end: (sandbox: Sandbox) => sandbox.resume() },
  hibernate: { begin: (sandbox: Sandbox) => sandbox.hibernate(), end: (sandbox: Sandbox) => sandbox.wake() },
}

/** A socket of the server's own, which does not connect again by itself. */
async function open(path: string): Promise<{ socket: WebSocket; messages: Message[]; text(): string }> {
  const headers = { authorization: `Bearer ${server.key}` }
  const socket = new WebSocket(server.url.replace('http', 'ws') + path, { headers })
  const messages: Message[] = []
  let bytes = ''
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) bytes += data.subarray(1).toString()
    else messages.push(JSON.parse(data.toString()))
  })
  await once(socket, 'open')
  await until(() => messages.length > 0)
  return { socket, messages, text: () => bytes }
}

interface Message {
  type: string
  event?: unknown
  path?: string
}

async function eventsOf(
  sandbox: Sandbox,
  types: string,
): Promise<{ type: string; data: { name?: string } }[]> {
  const response = await server.fetch(`/v1/sandboxes/${sandbox.id}/events?direction=asc&types=${types}`)
  return ((await response.json()) as { events: { type: string; data: object }[] }).events
}

const countOf = async (sandbox: Sandbox) => Number(await say(sandbox, 'cat count'))

for (const [verb, { begin, end }] of Object.entries(STANDS_STILL)) {
  test(`${verb}: a command that a client waits for continues and is answered`, async () => {
    await using sandbox = await suite.create()
    let isOver = false
    const waited = sandbox.exec.run('touch began; sleep 1; echo done', { timeout: 60_000 }).finally(() => {
      isOver = true
    })
    await until(async () => (await sandbox.exec.run('test -e began')).exitCode === 0)
    await begin(sandbox)
    await sleep(STILL_MS)
    assert.equal(isOver, false)
    await end(sandbox)
    const { stdout, exitCode, timedOut } = await waited
    assert.deepEqual({ stdout, exitCode, timedOut }, { stdout: 'done\n', exitCode: 0, timedOut: false })
    assert.deepEqual(await eventsOf(sandbox, 'process.lost'), [])
  })

  test(`${verb}: a service with a health check stays ready and is not started again`, async () => {
    await using sandbox = await suite.create()
    const healthCheck = { path: '/', interval: 100, timeout: 200 }
    await sandbox.service.start({
      name: 'web',
      start: WEB,
      port: 3000,
      healthCheck,
      restartPolicy: 'always',
      restartDelay: 0,
    })
    const before = await sandbox.service.waitFor('web')
    await begin(sandbox)
    await sleep(STILL_MS)
    const still = await sandbox.service.retrieve('web')
    await end(sandbox)
    for (let look = 0; look < 10; look++) {
      const { status, healthy, pid, restartCount } = await sandbox.service.retrieve('web')
      assert.deepEqual([status, healthy, pid, restartCount], ['ready', true, before.pid, 0])
      await sleep(100)
    }
    assert.deepEqual([still.status, still.pid], ['ready', before.pid])
    const told = await eventsOf(sandbox, 'service.started,service.ready,service.restarted,service.failed')
    assert.deepEqual(
      told.map(({ type }) => type),
      ['service.started', 'service.ready'],
    )
    // The service is supervised again.
    await sandbox.exec.run(`kill ${before.pid}`)
    await until(async () => (await sandbox.service.retrieve('web')).restartCount === 1)
    await sandbox.service.waitFor('web')
  })

  test(`${verb}: clients of a watcher, a terminal, signals and a preview are still there`, async () => {
    await using sandbox = await suite.create({ files: [{ path: 'src/a', content: '' }] })
    await sandbox.files.write(
      'slow.py',
      `
import http.server, os, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(b'one '); self.wfile.flush()
        while not os.path.exists('go'): time.sleep(0.02)
        self.wfile.write(b'two')
http.server.ThreadingHTTPServer(('127.0.0.1', 4000), Slow).serve_forever()
`,
    )
    await sandbox.service.start({ name: 'slow', start: 'exec python3 slow.py' })
    const { url } = await sandbox.service.waitFor('slow')
    const response = await fetch(url!)
    const body = response.body!.getReader()
    const first = await body.read()
    assert.equal(Buffer.from(first.value!).toString(), 'one ')

    const watcher = await sandbox.watcher.create('src')
    const watching = await open(watcher.getChannel())
    const signals = await open(`/v1/sandboxes/${sandbox.id}/signals`)
    const created = await server.post(`/v1/sandboxes/${sandbox.id}/terminals`, { pty: true })
    const terminal = await open(((await created.json()) as { channel: string }).channel)
    terminal.socket.send(Buffer.from('echo first $((40+1))\n'))
    await until(() => terminal.text().includes('first 41'))

    await begin(sandbox)
    await sleep(500)
    await end(sandbox)

    await say(sandbox, 'touch src/after go')
    await until(() => watching.messages.some(({ path }) => path?.endsWith('/src/after')))
    assert.ok(!watching.messages.some(({ type }) => type === 'overflow'))
    terminal.socket.send(Buffer.from('echo second $((40+2))\n'))
    await until(() => terminal.text().includes('second 42'))
    await sandbox.service.start({ name: 'web', start: WEB, port: 5000 })
    await until(() => JSON.stringify(signals.messages).includes('"port":5000,"type":"open"'))
    let rest = ''
    for (let read = await body.read(); !read.done; read = await body.read())
      rest += Buffer.from(read.value).toString()
    assert.equal(rest, 'two')
    for (const { socket } of [watching, signals, terminal]) {
      assert.equal(socket.readyState, WebSocket.OPEN)
      socket.terminate()
    }
  })

  test(`${verb}: a command whose client left during the suspension is killed after it`, async () => {
    await using sandbox = await suite.create()
    const left = new AbortController()
    const waited = sandbox.exec.run(COUNTER, { signal: left.signal }).catch(() => {})
    await until(async () => (await sandbox.exec.run('test -e count')).exitCode === 0)
    await begin(sandbox)
    left.abort()
    await waited
    await sleep(200)
    await end(sandbox)
    await until(async () => (await eventsOf(sandbox, 'process.exited')).some(isKilled))
  })

  test(`${verb}: after a kill of the server everything continues where it was`, async () => {
    await using sandbox = await suite.create()
    const started = await server.post(`/v1/sandboxes/${sandbox.id}/processes`, { command: COUNTER })
    const { id } = (await started.json()) as { id: string }
    await sandbox.service.start({ name: 'web', start: WEB, port: 3000 })
    const { pid } = await sandbox.service.waitFor('web')
    const watched = await server.post(`/v1/sandboxes/${sandbox.id}/watchers`, { path: '.' })
    const { channel } = (await watched.json()) as { channel: string }
    await until(async () => (await sandbox.exec.run('test -e count')).exitCode === 0)
    await begin(sandbox)
    await server.kill()
    await server.start()
    const { status } = await sandbox.getInfo()
    assert.equal(status, verb === 'pause' ? 'paused' : 'hibernated')
    const process = await server.fetch(`/v1/sandboxes/${sandbox.id}/processes/${id}?wait=300`)
    assert.equal(((await process.json()) as { status: string }).status, 'running')
    assert.equal((await sandbox.getInfo()).status, status)
    await end(sandbox)
    const before = await countOf(sandbox)
    await until(async () => (await countOf(sandbox)) > before)
    const web = await sandbox.service.waitFor('web')
    assert.deepEqual([web.pid, web.restartCount], [pid, 0])
    const watching = await open(channel)
    await until(() => watching.messages.some(({ path }) => path?.endsWith('/count')))
    watching.socket.terminate()
    assert.equal((await server.fetch(`/v1/sandboxes/${sandbox.id}/processes/${id}`)).status, 200)
  })
}

const isKilled = ({ data }: { data: object }) => 'signal' in data && data.signal === 'SIGKILL'

test('a command in the foreground keeps its sandbox awake also after the server was killed', async () => {
  await using sandbox = await suite.create({ timeout: { idle: 2000 } })
  // The answer is lost, because the server is gone.
  void sandbox.exec.run('sleep 7; date +%s%N > ended').catch(() => {})
  await until(async () => (await eventsOf(sandbox, 'process.started')).length === 1)
  await server.kill()
  await server.start()
  await until(async () => (await eventsOf(sandbox, 'hibernated')).length === 1)
  const order = await eventsOf(sandbox, 'process.exited,process.lost,idle-timeout,hibernated')
  assert.deepEqual(
    order
      .map(({ type }) => type)
      .slice(0, 2)
      .sort(),
    ['idle-timeout', 'process.exited'].sort(),
  )
  assert.equal(order[0]!.type, 'process.exited')
})

test('a shutdown does not wait for the command of a suspended sandbox, which continues later', {
  timeout: 120_000,
}, async () => {
  await withServer(
    async (server) => {
      const sandbox = await server.islet().sandboxes.create()
      const path = `/v1/sandboxes/${sandbox.id}`
      const waited = server.post(`${path}/exec`, { command: 'touch began; sleep 1; echo on > went' })
      await until(async () => (await sandbox.exec.run('test -e began')).exitCode === 0)
      await sandbox.pause()
      assert.equal(await server.stop(), 0)
      const { error } = (await (await waited).json()) as { error: { code: string } }
      assert.equal(error.code, 'sandbox_lost')
      await server.start()
      await until(async () => (await sandbox.exec.run('cat went')).stdout === 'on\n')
    },
    { env: { ISLET_DRAIN_TIMEOUT: '1h' } },
  )
})

test('programs inside reach the server after a pause as before', async () => {
  await using sandbox = await suite.create({ storeAccess: true })
  const put = (key: string) =>
    say(
      sandbox,
      `curl -sf -X PUT -H "Authorization: Bearer $ISLET_STORE_TOKEN" -H "Content-Type: application/json" -d '{"value": 1}' "$ISLET_STORE_URL/${key}"`,
    )
  await put('before')
  await sandbox.pause()
  await sandbox.resume()
  await put('paused')
  await sandbox.hibernate()
  await put('woken')
  assert.deepEqual((await sandbox.store.list()).keys, ['before', 'paused', 'woken'])
})
