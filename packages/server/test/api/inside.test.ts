import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { type ExecResult, LIMITS, type Sandbox } from '@islet/contract'
import { needs } from '../../../../tests/support/programs.ts'
import { InsideClient } from '../support/inside.ts'
import { errorOf, startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

needs('curl')

const SIGNAL = { body: { signal: 'hello' } }

describe('from inside a sandbox', () => {
  let api: TestApi
  let made: Sandbox
  let plain: InsideClient
  let trusted: InsideClient
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox({ storeAccess: true })
    trusted = await InsideClient.of(api, made.id)
    plain = await InsideClient.of(api, (await api.createSandbox()).id)
  })
  after(() => api[Symbol.asyncDispose]())

  const exec = async (command: string, more: object = {}): Promise<ExecResult> => {
    const response = await api.call('POST', `/v1/sandboxes/${made.id}/exec`, { command, ...more })
    assert.equal(response.status, 200)
    return (await response.json()) as ExecResult
  }

  it('signals are taken from anybody', async () => {
    assert.equal((await plain.call('POST', '/v1/signals', SIGNAL)).status, 204)
    assert.equal((await exec('islet-signal hello')).exitCode, 0)
  })

  it('islet-signal is found whatever PATH a command is given', async () => {
    for (const PATH of ['/bin:/usr/bin', '/bin', '']) {
      const { exitCode, stderr } = await exec('islet-signal hello', { env: { PATH } })
      assert.equal(exitCode, 0, stderr)
    }
  })

  it('islet-signal prints why it was refused', async () => {
    const { exitCode, stderr } = await exec('islet-signal Hello')
    assert.equal(exitCode, 1)
    assert.match(stderr, /^islet-signal: .*lower-case/)
    assert.equal((await exec('islet-signal hello {')).exitCode, 1)
  })

  it('the store is reached with what storeAccess gives, by any HTTP client', async () => {
    assert.match(trusted.env.ISLET_STORE_URL!, /^http:\/\/127\.0\.0\.1:\d+\/v1\/store$/)
    const curl = `curl -sf -H "Authorization: Bearer $ISLET_STORE_TOKEN" -H 'Content-Type: application/json'`
    const python = `import json, os, urllib.request as u
url, token = os.environ['ISLET_STORE_URL'], os.environ['ISLET_STORE_TOKEN']
def call(method, path, body=None):
    r = u.Request(url + path, method=method, data=body and json.dumps(body).encode(), headers={'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'})
    return json.load(u.urlopen(r))
call('PUT', '/python', {'value': [1, None]})
print(call('GET', '/python')['value'], call('GET', '?prefix=py')['keys'])`
    const node = `const { ISLET_STORE_URL: url, ISLET_STORE_TOKEN: token } = process.env
const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' }
const operations = [{ op: 'set', key: 'node', value: 'n' }, { op: 'delete', key: 'python' }]
const batch = await fetch(url + '/batch', { method: 'POST', headers, body: JSON.stringify({ operations }) })
const { value } = await (await fetch(url + '/node', { headers })).json()
console.log(batch.status, value)`
    const steps: [string, string][] = [
      [
        `${curl} -X PUT -d '{"value": {"a": 1}}' $ISLET_STORE_URL/curl >/dev/null && ${curl} $ISLET_STORE_URL/curl`,
        '',
      ],
      ['python3 -', python],
      [`'${process.execPath}' --input-type=module -`, node],
    ]
    const printed: string[] = []
    for (const [command, stdin] of steps) {
      const { exitCode, stdout, stderr } = await exec(command, { stdin })
      assert.equal(exitCode, 0, stderr)
      printed.push(stdout.trim())
    }
    assert.deepEqual(JSON.parse(printed[0]!).value, { a: 1 })
    assert.deepEqual(printed.slice(1), ["[1, None] ['python']", '200 n'])
    const outside = await api.call('GET', `/v1/sandboxes/${made.id}/store/node`)
    assert.equal(((await outside.json()) as { value: string }).value, 'n')
  })

  it('the store refuses a caller with no token, or with a wrong one', async () => {
    assert.deepEqual([plain.env.ISLET_STORE_URL, plain.env.ISLET_STORE_TOKEN], [undefined, undefined])
    const { token } = (await (await api.call('POST', `/v1/sandboxes/${made.id}/token`, {})).json()) as {
      token: string
    }
    for (const [client, given] of [
      [plain, undefined],
      [trusted, undefined],
      [plain, trusted.token],
      [trusted, token],
      [trusted, TEST_KEY],
      [trusted, 'x'],
      [trusted, `${trusted.token}x`],
    ] as const) {
      const answer = await client.call('GET', '/v1/store', given === undefined ? {} : { token: given })
      assert.equal(answer.code, 'unauthorized')
    }
    assert.equal((await trusted.call('GET', '/v1/store', { token: trusted.token })).status, 200)
    // A body is read only after the caller is known.
    const large = { headers: { 'content-length': String(2 ** 30) } }
    assert.equal((await plain.call('PUT', '/v1/store/x', large)).code, 'unauthorized')
  })

  it('its token opens nothing on the ordinary address', async () => {
    for (const path of ['/v1/store', `/v1/sandboxes/${made.id}`, `/v1/sandboxes/${made.id}/store`]) {
      const headers = { authorization: `Bearer ${trusted.token}` }
      assert.equal((await errorOf(await fetch(api.url + path, { headers }))).code, 'unauthorized')
    }
  })

  it('nothing else is reached, by no address and with no key', async () => {
    for (const path of [
      '/',
      '/health',
      '/ready',
      '/docs',
      '/openapi.json',
      '/v1/sandboxes',
      `/v1/sandboxes/${made.id}`,
      `/v1/sandboxes/${made.id}/store`,
      `/v1/sandboxes/${made.id}/signals`,
      `/v1/sandboxes/${made.id}/files?path=/etc/passwd`,
      '/v1/store/../sandboxes',
      '/v1/store/../../docs',
      '/v1/store/%2e%2e/sandboxes',
      '/v1/store/%2e%2e/%2E%2e/health',
      '/v1/signals/../../openapi.json',
      '/v1//store',
      '//v1/store',
      '/V1/store',
      '/v1/%73tore',
      '/v1/storex',
      'http://localhost/v1/sandboxes',
    ]) {
      for (const token of [undefined, trusted.token]) {
        const answer = await trusted.call('GET', path, token === undefined ? {} : { token })
        assert.equal(answer.code, 'forbidden', path)
      }
      const { code } = await trusted.call('GET', path, { token: TEST_KEY })
      assert.equal(code, 'forbidden', path)
    }
  })

  it('no header says that a request comes from elsewhere', async () => {
    const headers = {
      'x-forwarded-for': '127.0.0.1',
      forwarded: 'for=127.0.0.1',
      'x-real-ip': '127.0.0.1',
      'x-islet-sandbox': made.id,
      cookie: `islet_token=${TEST_KEY}`,
    }
    assert.equal((await plain.call('GET', '/v1/store', { headers })).code, 'unauthorized')
    assert.equal((await plain.call('GET', '/v1/sandboxes', { headers })).code, 'forbidden')
  })

  it("no Host leads to a preview, which may be another sandbox's", async () => {
    const host = 'preview.localhost'
    await using named = await startTestApi({ previewDomain: `http://${host}` })
    const victim = await named.createSandbox()
    const preview = { port: 34567, domain: 'victim.localhost' }
    assert.equal((await named.call('POST', `/v1/sandboxes/${victim.id}/previews`, preview)).status, 201)
    const hostile = await InsideClient.of(named, (await named.createSandbox()).id)
    for (const name of [`34567-${victim.id}.${host}`, 'victim.localhost', `nothing.${host}`]) {
      for (const more of [
        [],
        [
          ['connection', 'upgrade'],
          ['upgrade', 'websocket'],
        ],
      ]) {
        const headers: Record<string, string> = Object.fromEntries([['host', name], ...more])
        assert.equal((await hostile.call('GET', '/', { headers })).code, 'forbidden', name)
      }
    }
  })

  it('there is no WebSocket', async () => {
    const upgrade = `Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'x'.repeat(22)}==\r\n\r\n`
    const socket = await plain.connect()
    socket.write(`GET /v1/sandboxes/${made.id}/signals HTTP/1.1\r\n${upgrade}`)
    const [chunk] = await once(socket, 'data')
    assert.match(String(chunk), /^HTTP\/1\.1 403 /)
    socket.destroy()
  })

  it('requests that are sent ahead of their turn end the connection', async () => {
    const one = 'GET /v1/store HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const answer = await plain.raw(one.repeat(1000))
    assert.ok(answer.split('HTTP/1.1 ').length <= 3, answer.slice(0, 500))
  })

  it('broken requests and large heads are refused and cost nothing', async () => {
    assert.match(await plain.raw('hello\r\n\r\n'), /^HTTP\/1\.1 400 /)
    const large = `GET /v1/store HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(64 * 1024)}\r\n\r\n`
    assert.match(await plain.raw(large), /^HTTP\/1\.1 400 /)
    assert.equal((await plain.call('POST', '/v1/signals', SIGNAL)).status, 204)
  })

  it('signals come at a bounded rate', async () => {
    const own = await InsideClient.of(api, (await api.createSandbox()).id)
    const answers = await Promise.all(Array.from({ length: 60 }, () => send(4)))
    const codes = answers.flat()
    assert.ok(codes.includes('limit_exceeded'))
    assert.ok(codes.filter((code) => code === undefined).length >= 100)
    assert.equal((await plain.call('POST', '/v1/signals', SIGNAL)).status, 204)

    async function send(count: number): Promise<(string | undefined)[]> {
      const codes: (string | undefined)[] = []
      for (let i = 0; i < count; i++) codes.push((await own.call('POST', '/v1/signals', SIGNAL)).code)
      return codes
    }
  })

  it('a signal that is too large is not taken in, and a deep one not gone into', async () => {
    const large = { headers: { 'content-length': String(LIMITS.signalBodyBytes + 1) } }
    assert.equal((await plain.call('POST', '/v1/signals', large)).code, 'body_too_large')
    const text = `{"signal":"deep","data":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    const head = `POST /v1/signals HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${text.length}\r\n\r\n`
    assert.match(await plain.raw(head + text), /^HTTP\/1\.1 400 /)
  })

  it('a program that sends too much waits, and others do not', async () => {
    const busy = await InsideClient.of(api, (await api.createSandbox({ storeAccess: true })).id)
    const operations = Array.from({ length: 8 }, (_, i) => ({
      op: 'set',
      key: `${i}`,
      value: 'x'.repeat(900_000),
    }))
    const sent = await busy.call('POST', '/v1/store/batch', { token: busy.token, body: { operations } })
    assert.equal(sent.status, 200)
    const late = busy.call('POST', '/v1/signals', SIGNAL).then(
      () => 'busy',
      () => 'busy',
    )
    const other = plain.call('POST', '/v1/signals', SIGNAL).then(() => 'other')
    assert.equal(await Promise.race([late, other]), 'other')
  })

  it('the number of connections is limited', async () => {
    const own = await InsideClient.of(api, (await api.createSandbox()).id)
    const sockets = await Promise.all(Array.from({ length: 100 }, () => own.connect()))
    await until(() => sockets.filter((socket) => socket.destroyed).length >= 36)
    assert.equal(sockets.filter((socket) => !socket.destroyed).length, 64)
    for (const socket of sockets) socket.destroy()
    await until(
      async () => (await own.call('POST', '/v1/signals', SIGNAL).catch(() => undefined))?.status === 204,
    )
  })

  it('nothing of it is in the log at the ordinary level', async () => {
    const from = api.logged.length
    await plain.call('POST', '/v1/signals', SIGNAL)
    await plain.call('GET', '/v1/sandboxes')
    await plain.raw('hello\r\n\r\n')
    const seen = api.logged.slice(from).map((line) => JSON.parse(line) as { level: string })
    assert.deepEqual(
      seen.filter(({ level }) => level !== 'debug' && level !== 'trace'),
      [],
    )
  })

  it('the port that leads here is not among those that listen', async () => {
    const port = Number(new URL(trusted.env.ISLET_STORE_URL!).port)
    const response = await api.call('GET', `/v1/sandboxes/${made.id}/ports`)
    const { ports } = (await response.json()) as { ports: { port: number }[] }
    assert.ok(!ports.some((found) => found.port === port))
  })

  it('the socket goes with its sandbox', async () => {
    const { id } = await api.createSandbox()
    const own = await InsideClient.of(api, id)
    const held = await own.connect()
    const closed = once(held, 'close')
    assert.ok(existsSync(own.socketPath))
    await api.call('DELETE', `/v1/sandboxes/${id}`)
    await closed
    assert.ok(!existsSync(own.socketPath))
  })
})
