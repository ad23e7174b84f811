import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { ErrorBody, Sandbox } from '@islet/contract'
import { startTestApi, type TestApi } from '../support/server.ts'

describe('a request that is not valid', () => {
  let api: TestApi
  let sandbox: string
  before(async () => {
    api = await startTestApi()
    sandbox = `/v1/sandboxes/${(await api.createSandbox()).id}`
  })
  after(() => api[Symbol.asyncDispose]())

  type Issues = { issues: { path: string; message: string }[] }
  async function refused(method: string, path: string, body?: unknown, init?: RequestInit) {
    const response = await api.call(method, path, body, init)
    const { error } = (await response.json()) as ErrorBody
    return { ...error, status: response.status, issues: (error.details as Issues | undefined)?.issues ?? [] }
  }
  const json = { headers: { 'Content-Type': 'application/json' } }

  it('is named by the field that is wrong', async () => {
    const cases: [unknown, string][] = [
      [{ command: 1 }, 'command'],
      [{ command: '' }, 'command'],
      [{ command: [] }, 'command'],
      [{ command: ['a', 1] }, 'command[1]'],
      [{ command: 'a\0b' }, 'command'],
      [{}, 'command'],
      [{ command: 'a', env: { A: 1 } }, 'env.A'],
      [{ command: 'a', env: { 'A=B': 'x' } }, 'env.A=B'],
      [{ command: 'a', env: [] }, 'env'],
      [{ command: 'a', timeout: 'soon' }, 'timeout'],
      [{ command: 'a', timeout: '25h' }, 'timeout'],
      [{ command: 'a', user: 'a b' }, 'user'],
      [{ command: 'a', maxOutputBytes: -1 }, 'maxOutputBytes'],
      [{ command: 'a', nope: 1 }, 'nope'],
      [{ command: 'a', constructor: 1 }, 'constructor'],
    ]
    for (const [body, path] of cases) {
      const { status, code, message, issues } = await refused('POST', `${sandbox}/exec`, body)
      assert.equal(status, 400, path)
      assert.equal(code, 'bad_request', path)
      assert.equal(issues[0]?.path, path)
      assert.ok(message.startsWith(`${path}: `), message)
    }
    const ran = await (await api.call('GET', `${sandbox}/processes`)).json()
    assert.deepEqual(ran, { processes: [], total: 0 })
  })

  it('says all that is wrong, up to a bound', async () => {
    const { issues } = await refused('POST', '/v1/sandboxes', {
      name: '',
      env: { A: 1 },
      x: 1,
      resources: { cpu: -1 },
    })
    assert.deepEqual([...new Set(issues.map(({ path }) => path))].sort(), [
      'env.A',
      'name',
      'resources.cpu',
      'x',
    ])
    const env = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`V${index}`, index]))
    assert.equal((await refused('POST', '/v1/sandboxes', { env })).issues.length, 20)
  })

  it('is refused when an environment has 10,000 variables', async () => {
    const env = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`V${index}`, 'x']))
    const { status, message } = await refused('POST', '/v1/sandboxes', { env })
    assert.equal(status, 400)
    assert.match(message, /^env: .*1000 members/)
  })

  it('is refused when the body is not a JSON object', async () => {
    for (const body of ['{', '{"a":}', 'nonsense', '{} x', '{"command":"a",}', "{'command':'a'}"]) {
      assert.equal((await refused('POST', `${sandbox}/exec`, body, json)).code, 'invalid_json', body)
    }
    for (const body of ['[]', 'null', '1', '"text"', 'true']) {
      assert.equal((await refused('POST', `${sandbox}/exec`, body, json)).code, 'bad_request', body)
    }
    const notUtf8 = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])
    assert.equal((await refused('POST', `${sandbox}/exec`, notUtf8, json)).code, 'invalid_json')
  })

  it('does not quote the body when that is not JSON', async () => {
    assert.doesNotMatch((await refused('POST', `${sandbox}/exec`, '{"sesame"', json)).message, /sesame/)
  })

  it('is refused when the content type or encoding is another one', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
      const { code, hint } = await refused('POST', `${sandbox}/exec`, '{"command":"a"}', {
        headers: { 'Content-Type': type },
      })
      assert.equal(code, 'invalid_json', type)
      assert.match(hint ?? '', /application\/json/)
    }
    const gzip = { headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' } }
    assert.equal((await refused('POST', `${sandbox}/exec`, 'x', gzip)).code, 'invalid_header')
  })

  it('is accepted with any spelling of JSON, and with no body where {} would do', async () => {
    for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/vnd.x+json']) {
      const headers = { 'Content-Type': type }
      assert.equal((await api.call('POST', '/v1/sandboxes', '{}', { headers })).status, 201, type)
    }
    assert.equal((await api.call('POST', '/v1/sandboxes')).status, 201)
    assert.equal((await api.call('POST', '/v1/sandboxes', '', json)).status, 201)
  })

  it('is refused when it is nested beyond reason', async () => {
    const depth = 100_000
    const body = `{"metadata":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`
    const { status, code } = await refused('POST', '/v1/sandboxes', body, json)
    assert.deepEqual([status, code], [400, 'bad_request'])
  })

  it('cannot reach the prototype of anything', async () => {
    const body = '{"__proto__":{"polluted":1},"metadata":{"__proto__":{"polluted":1}}}'
    await api.call('POST', '/v1/sandboxes', body, json)
    assert.equal(({} as { polluted?: number }).polluted, undefined)
    assert.equal((await refused('GET', '/v1/sandboxes?__proto__=1')).status, 400)
  })

  it('is refused for its query: unknown, repeated, wrong or badly encoded', async () => {
    for (const query of [
      'nope=1',
      'limit=0',
      'limit=x',
      'limit=0x10',
      'limit=1e2',
      'limit=+1',
      'limit=1.0',
      'limit=',
      'limit=1&limit=2',
      'name=%ff',
      'name=%',
      'name=%zz',
      'status=odd',
    ]) {
      const { status, code } = await refused('GET', `/v1/sandboxes?${query}`)
      assert.deepEqual([status, code], [400, 'bad_request'], query)
    }
    assert.equal((await refused('GET', '/v1/info?x=1')).status, 400)
  })

  it('may repeat a key that is a list, and use + for a space', async () => {
    const { id } = await api.createSandbox({ name: 'a b+', metadata: { a: '1', b: '2' } })
    await api.createSandbox({ name: 'a b', metadata: { a: '1', b: '2' } })
    const found = await api.call('GET', '/v1/sandboxes?metadata=a%3D1&metadata=b=2&name=a+b%2B')
    const { sandboxes } = (await found.json()) as { sandboxes: Sandbox[] }
    assert.deepEqual(
      sandboxes.map((each) => each.id),
      [id],
    )
  })

  it('is refused for a NUL wherever it stands', async () => {
    assert.equal((await refused('GET', `${sandbox}/files?path=/a%00b`)).code, 'invalid_path')
    assert.equal((await refused('POST', `${sandbox}/files/mkdir`, { path: '/a\0' })).code, 'invalid_path')
    assert.equal((await refused('POST', '/v1/sandboxes', { workdir: '/\0' })).code, 'invalid_path')
    const texts = [
      { name: 'a\0' },
      { description: 'a\0' },
      { metadata: { a: ['\0'] } },
      { metadata: { '\0': 1 } },
    ]
    for (const body of texts) {
      const { status, issues } = await refused('POST', '/v1/sandboxes', body)
      assert.deepEqual([status, issues[0]?.path.split('.')[0]], [400, Object.keys(body)[0]])
      assert.equal((await refused('PATCH', sandbox, body)).status, 400)
    }
    for (const path of ['/v1/sandboxes?name=a%00', '/v1/sandboxes?a%00=1', '/v1/images/a%00b', '/v1/%00']) {
      const { status } = await refused('DELETE', path).then((error) =>
        error.status === 405 ? refused('GET', path) : error,
      )
      assert.ok(status >= 400 && status < 500, `${path} ${status}`)
    }
  })

  it('is refused for a path that is empty or longer than any path', async () => {
    assert.equal((await refused('GET', `${sandbox}/files?path=`)).code, 'bad_request')
    assert.equal((await refused('GET', `${sandbox}/files`)).code, 'bad_request')
    assert.equal((await refused('GET', `${sandbox}/files?path=${'x'.repeat(4096)}`)).code, 'invalid_path')
    const part = `/${'é'.repeat(100)}`
    const longest = encodeURIComponent(`${part.repeat(20)}/${'é'.repeat(36)}`)
    assert.equal((await refused('GET', `${sandbox}/files?path=${longest}`)).code, 'file_not_found')
  })
})
