import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type ListeningPort, type Sandbox, type SignalEvent, signalStatus } from '@islet/contract'
import { WebSocket } from 'ws'
import { AUTHORIZED } from '../support/client.ts'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'
import { SignalClient } from '../support/signal-client.ts'

const LISTEN = `
import socket, sys
family, host = (socket.AF_INET6, sys.argv[1]) if ':' in sys.argv[1] else (socket.AF_INET, sys.argv[1])
s = socket.create_server((host, int(sys.argv[2])), family=family)
print(s.getsockname()[1], flush=True)
sys.stdin.read()`

describe('signals', () => {
  let api: TestApi
  let sandbox: Sandbox
  let base: string
  before(async () => {
    api = await startTestApi()
    sandbox = await api.createSandbox()
    base = `/v1/sandboxes/${sandbox.id}`
  })
  after(() => api[Symbol.asyncDispose]())

  const listen = (of = sandbox) =>
    SignalClient.open(`${api.url.replace('http', 'ws')}/v1/sandboxes/${of.id}/signals`)
  const emit = (event: SignalEvent) => api.call('POST', `${base}/signals`, event)
  const verb = async (name: 'start' | 'stop' | 'status') => {
    const response = await api.call(name === 'status' ? 'GET' : 'POST', `${base}/signals/${name}`)
    assert.equal(response.status, 200)
    return signalStatus.parse(await response.json())
  }
  const ports = async (): Promise<ListeningPort[]> =>
    ((await (await api.call('GET', `${base}/ports`)).json()) as { ports: ListeningPort[] }).ports
  const exec = (command: string) => api.call('POST', `${base}/exec`, { command })
  /** A program that listens until it is ended. */
  const serve = async (host = '127.0.0.1', port = 0) => {
    const command = ['/usr/bin/python3', '-c', LISTEN, host, String(port)]
    const process = await api.start(sandbox.id, { command, stdin: true })
    const of = `${base}/processes/${process.id}`
    let text = ''
    await until(async () => {
      const output = (await (await api.call('GET', `${of}/output`)).json()) as { stdout: string }
      text = output.stdout
      return text.includes('\n')
    })
    return { process, port: Number(text), end: () => api.call('DELETE', of) }
  }

  it('are stopped until they are started, and then active until they are stopped', async () => {
    assert.equal((await verb('status')).status, 'stopped')
    const started = await verb('start')
    const channel = `${base}/signals`
    assert.deepEqual(started, { status: 'active', channel, wsUrl: api.url.replace('http', 'ws') + channel })
    assert.deepEqual(await verb('start'), started)
    assert.equal((await verb('stop')).status, 'stopped')
    assert.equal((await verb('stop')).status, 'stopped')
    assert.equal((await verb('status')).status, 'stopped')
  })

  it('are started by the first connection, and stopping ends all connections', async () => {
    const clients = [await listen(), await listen()]
    assert.equal((await verb('status')).status, 'active')
    await verb('stop')
    for (const client of clients) {
      assert.equal(await client.closed, 1000)
      assert.deepEqual(client.types, ['start', 'exit'])
    }
    const again = await listen()
    assert.equal((await verb('status')).status, 'active')
    again.socket.close()
    await again.closed
    assert.equal((await verb('status')).status, 'active')
    await verb('stop')
  })

  it('reach all listeners, from outside and from inside', async () => {
    const url = 'http://localhost:3000'
    const events: SignalEvent[] = [
      { signal: 'port', port: 3000, type: 'open', url },
      { signal: 'server-ready', port: 3000, url },
      { signal: 'error', message: 'it broke\n"badly"' },
      { signal: 'build.done', data: { files: [1, null, 'é'] } },
      { signal: 'bare' },
    ]
    const clients = [await listen(), await listen()]
    for (const event of events) assert.equal((await emit(event)).status, 204)
    const inside = [
      `islet-signal port 3000 open ${url}`,
      `islet-signal server-ready 3000 ${url}`,
      `islet-signal error "$(printf 'it broke\\n"badly"')"`,
      `islet-signal build.done '{"files": [1, null, "é"]}'`,
      'islet-signal bare',
    ]
    const ran = (await (await exec(inside.join(' && '))).json()) as { exitCode: number; stderr: string }
    assert.equal(ran.exitCode, 0, ran.stderr)
    for (const client of clients) {
      await until(() => client.events.length === 10)
      assert.deepEqual(client.events, [...events, ...events])
      client.socket.close()
    }
  })

  it('are lost if there is no listener', async () => {
    await verb('stop')
    assert.equal((await emit({ signal: 'unheard' })).status, 204)
    const client = await listen()
    await emit({ signal: 'heard' })
    await until(() => client.events.length === 1)
    assert.deepEqual(client.events, [{ signal: 'heard' }])
    client.socket.close()
  })

  it('are checked', async () => {
    const bad: unknown[] = [
      {},
      { signal: 'port', port: 0, type: 'open', url: 'x' },
      { signal: 'port', port: 3000, type: 'ajar', url: 'x' },
      { signal: 'port', port: 3000, url: 'x' },
      { signal: 'server-ready', port: 65_536, url: 'x' },
      { signal: 'error' },
      { signal: 'error', message: 'x'.repeat(64 * 1024 + 1) },
      { signal: 'Upper' },
      { signal: 'x'.repeat(129) },
      { signal: 'x', data: 'x'.repeat(64 * 1024) },
      { signal: 'x', more: 1 },
    ]
    for (const body of bad) {
      const response = await api.call('POST', `${base}/signals`, body)
      assert.equal((await errorOf(response)).code, 'bad_request', JSON.stringify(body).slice(0, 80))
    }
  })

  it('report ports that open and close, on any address, and not ports that were open before', async () => {
    const before = await serve()
    const client = await listen()
    for (const host of ['127.0.0.1', '0.0.0.0', '::1']) {
      const opened = await serve(host)
      await until(() => client.port(opened.port).length === 1)
      await opened.end()
      await until(() => client.port(opened.port).length === 2)
      const [open, close] = client.port(opened.port)
      assert.deepEqual([open!.type, close!.type], ['open', 'close'])
      assert.match(open!.url, /^http:\/\//)
      assert.equal(close!.url, open!.url)
    }
    assert.deepEqual(client.port(before.port), [])
    await before.end()
    await until(() => client.port(before.port).length === 1)
    assert.equal(client.port(before.port)[0]!.type, 'close')
    client.socket.close()
  })

  it('tell of a port once, however many addresses it has', async () => {
    const client = await listen()
    const one = await serve('127.0.0.1')
    const other = await serve('::1', one.port)
    const last = await serve()
    await until(() => client.port(last.port).length === 1)
    assert.equal(client.port(one.port).length, 1)
    await one.end()
    await last.end()
    await until(() => client.port(last.port).length === 2)
    assert.equal(client.port(one.port).length, 1, 'it is still open on the other address')
    await other.end()
    await until(() => client.port(one.port).length === 2)
    client.socket.close()
  })

  it('do not tell of what processes print or how they end', async () => {
    const client = await listen()
    await exec('echo error >&2; exit 3')
    await emit({ signal: 'last' })
    await until(() => client.events.length > 0)
    assert.deepEqual(client.events, [{ signal: 'last' }])
    client.socket.close()
  })

  it('that a client does not read are lost for it, and it is told so', async () => {
    const slow = await listen()
    const quick = await listen()
    slow.socket.pause()
    const data = 'x'.repeat(60 * 1024)
    for (let i = 0; i < 100; i++) await emit({ signal: 'large', data })
    await emit({ signal: 'last' })
    await until(() => quick.events.length === 101)
    slow.socket.resume()
    await until(() => slow.events.at(-1)?.signal === 'last')
    assert.ok(slow.types.includes('overflow'))
    assert.ok(slow.events.length < 101)
    assert.ok(!quick.types.includes('overflow'))
    for (const client of [slow, quick]) client.socket.close()
  })

  it('have a bounded number of clients', async () => {
    const own = await api.createSandbox()
    const clients = await Promise.all(Array.from({ length: 64 }, () => listen(own)))
    const url = `${api.url.replace('http', 'ws')}/v1/sandboxes/${own.id}/signals`
    const status = await new Promise((done) => {
      const socket = new WebSocket(url, [], AUTHORIZED)
      socket.on('error', () => {})
      socket.on('unexpected-response', (_, response) => done(response.statusCode))
    })
    assert.equal(status, 429)
    clients[0]!.socket.close()
    await clients[0]!.closed
    const again = await listen(own)
    for (const client of [...clients, again]) client.socket.close()
  })

  it('end with the sandbox', async () => {
    const own = await api.createSandbox()
    const client = await listen(own)
    await api.call('DELETE', `/v1/sandboxes/${own.id}`)
    await client.closed
    assert.deepEqual(client.types, ['start', 'error'])
    const gone = await api.call('POST', `/v1/sandboxes/${own.id}/signals`, { signal: 'x' })
    assert.equal((await errorOf(gone)).code, 'invalid_state')
    const unknown = await api.call('GET', `/v1/sandboxes/sbx-${'0'.repeat(20)}/signals/status`)
    assert.equal((await errorOf(unknown)).code, 'sandbox_not_found')
  })

  it('are not started by an ordinary request', async () => {
    assert.equal((await errorOf(await api.call('GET', `${base}/signals`))).code, 'bad_request')
  })

  it('may be sent with the token of the sandbox', async () => {
    const { token } = (await (await api.call('POST', `${base}/token`, {})).json()) as { token: string }
    const client = await listen()
    const headers = { authorization: `Bearer ${token}` }
    const sent = await api.call('POST', '/v1/signals', { signal: 'mine' }, { headers })
    assert.equal(sent.status, 204)
    await until(() => client.events.length === 1)
    const nobody = await api.call('POST', '/v1/signals', { signal: 'mine' })
    assert.equal((await errorOf(nobody)).code, 'forbidden')
    client.socket.close()
  })

  it('leave no port unlisted: what listens is told with who holds it', async () => {
    const { port, process, end } = await serve()
    const found = (await ports()).find((one) => one.port === port)!
    assert.deepEqual([found.address, found.pid], ['127.0.0.1', process.pid])
    // The machine's own ports are none of the sandbox's.
    assert.ok(!(await ports()).some((one) => one.port === api.port))
    await end()
    await until(async () => !(await ports()).some((one) => one.port === port))
  })
})
