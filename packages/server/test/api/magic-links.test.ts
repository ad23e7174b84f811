// Magic links, and the cookie that they set: who may use it, and what a hostile page at another port of the host could try.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type CreatedSandbox, type ErrorBody, LIMITS, type MagicLink, type Session } from '@islet/contract'
import { WebSocket } from 'ws'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

const HTML = { Accept: 'text/html,*/*;q=0.8' }
const FOREIGN = 'http://127.0.0.1:1'

let api: TestApi
let own: CreatedSandbox
let other: CreatedSandbox
before(async () => {
  api = await startTestApi({ corsOrigins: FOREIGN })
  own = await api.createSandbox({ name: 'mine' })
  other = await api.createSandbox()
})
after(() => api[Symbol.asyncDispose]())

async function link(body: object = {}, id = own.id): Promise<MagicLink> {
  const response = await api.call('POST', `/v1/sandboxes/${id}/links`, body)
  assert.equal(response.status, 201)
  return (await response.json()) as MagicLink
}

const open = (url: string, init: RequestInit = {}) => fetch(url, { redirect: 'manual', ...init })

/** Opens a new link; answers with the value of the cookie. */
async function signIn(id = own.id): Promise<string> {
  const [set] = (await open((await link({}, id)).url)).headers.getSetCookie()
  return /^islet_session=([^;]+);/.exec(set!)![1]!
}

/** fetch refuses to set Cookie, Origin and Host. */
async function ask(method: string, path: string, headers: Record<string, string>, body?: string) {
  const sent = request(api.url + path, { method, headers })
  sent.end(body)
  const [message] = (await once(sent, 'response')) as [IncomingMessage]
  const text = Buffer.concat(await message.toArray()).toString()
  const isError = message.statusCode! >= 400 && text !== ''
  const code = isError ? (JSON.parse(text) as ErrorBody).error.code : undefined
  return { status: message.statusCode!, code, text, headers: message.headers }
}

const page = (cookie: string) => ({ Cookie: `islet_session=${cookie}`, 'X-Islet-Page': '1' })
const own_ = () => `/v1/sandboxes/${own.id}`
const isSignedIn = async (cookie: string) => (await ask('GET', own_(), page(cookie))).status === 200

describe('a magic link', () => {
  test('sets the cookie of a session of 7 days, and redirects without a trace', async () => {
    const { url, expiresAt, redirectUrl } = await link()
    assert.match(url, new RegExp(`^${api.url}/auth/magic/[\\w-]{43}$`))
    assert.equal(redirectUrl, '/play/')
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 300_000) < 60_000)
    const opened = await open(url, { headers: HTML })
    assert.equal(opened.status, 303)
    assert.equal(opened.headers.get('location'), '/play/')
    assert.equal(opened.headers.get('cache-control'), 'no-store')
    assert.equal(opened.headers.get('referrer-policy'), 'no-referrer')
    const [set, ...more] = opened.headers.getSetCookie()
    assert.match(set!, /^islet_session=st_[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/)
    assert.deepEqual(more, [])
    assert.equal(await opened.text(), '')
    const cookie = set!.slice('islet_session='.length, set!.indexOf(';'))
    const session = JSON.parse((await ask('GET', '/v1/session', page(cookie))).text) as Session
    assert.deepEqual([session.sandboxId, session.name], [own.id, 'mine'])
    assert.ok(Math.abs(Date.parse(session.expiresAt) - Date.now() - 604_800_000) < 60_000)
    const listed = await api.call('GET', `${own_()}/tokens/${session.tokenId}`)
    assert.equal(((await listed.json()) as { description: string }).description, 'magic link')
  })

  test('works once, also for two at once; HEAD does not use it up', async () => {
    const { url } = await link()
    for (let n = 0; n < 2; n++) {
      const head = await open(url, { method: 'HEAD' })
      assert.deepEqual([head.status, head.headers.getSetCookie()], [200, []])
    }
    assert.equal((await open(url, { method: 'POST' })).status, 405)
    const all = await Promise.all(Array.from({ length: 8 }, () => open(url)))
    assert.deepEqual(all.map(({ status }) => status).sort(), [303, ...Array(7).fill(410)])
    assert.equal(all.flatMap(({ headers }) => headers.getSetCookie()).length, 1)
    const used = await errorOf(await open(url))
    assert.deepEqual([used.status, used.code], [410, 'link_used_up'])
    assert.equal((await open(url, { method: 'HEAD' })).status, 410)
  })

  test('that is used up or unknown is a page in a browser, and an error elsewhere', async () => {
    const { url } = await link()
    await open(url)
    const shown = await open(url, { headers: HTML })
    assert.equal(shown.status, 410)
    assert.match(shown.headers.get('content-type')!, /^text\/html/)
    assert.match(shown.headers.get('content-security-policy')!, /default-src 'none'/)
    assert.match(await shown.text(), /<h1>This magic link was used already\.<\/h1>\n<p>islet link/)
    const secret = url.slice(-43)
    for (const wrong of ['x', `${secret.slice(0, 42)}_x`, 'x'.repeat(5000), '%00', '..%2f..', "'"]) {
      const answer = await errorOf(await open(`${api.url}/auth/magic/${wrong}`))
      assert.deepEqual([answer.status, answer.code], [404, 'link_not_found'], wrong.slice(0, 50))
      assert.equal((await open(`${api.url}/auth/magic/${wrong}`, { headers: HTML })).status, 404)
    }
  })

  test('leads only to paths of this server', async () => {
    for (const [given, kept] of [
      ['/', '/'],
      ['/dashboard', '/dashboard'],
      ['/a/../b?c=d#e', '/b?c=d#e'],
      ['/ä', '/%C3%A4'],
      ['/play/?next=https://example.com/', '/play/?next=https://example.com/'],
    ]) {
      const { url, redirectUrl } = await link({ redirectUrl: given })
      assert.equal(redirectUrl, kept)
      assert.equal((await open(url)).headers.get('location'), kept)
    }
    for (const redirectUrl of [
      ...[
        '',
        'play',
        'https://example.com',
        '//example.com',
        '///example.com',
        '/\\example.com',
        '\\\\example.com',
      ],
      ...[
        '/\t/example.com',
        '/\n/example.com',
        '\t//example.com',
        ' //example.com',
        'javascript:alert(1)',
        '/..//example.com',
      ],
      ...[
        '/.//example.com',
        '/a/..//example.com',
        '/\0',
        '/\u0085',
        `/${'x'.repeat(LIMITS.redirectLength)}`,
        7,
        null,
      ],
    ]) {
      const refused = await errorOf(await api.call('POST', `${own_()}/links`, { redirectUrl }))
      assert.deepEqual([refused.status, refused.code], [400, 'bad_request'], JSON.stringify(redirectUrl))
    }
  })

  test('is kept as a hash only, and is in no line of the log', async () => {
    const { url } = await link()
    const secret = url.slice(-43)
    const cookie = await signIn()
    await isSignedIn(cookie)
    await open(url, { method: 'HEAD' })
    await open(url)
    await open(url, { headers: HTML })
    // Other ways to write it, some of which lead nowhere.
    for (const path of [
      `/auth/m%61gic/${secret}`,
      `/%61uth/magic/${secret}`,
      `/auth/magic/${secret}/`,
      `/auth//magic/${secret}`,
    ])
      await open(api.url + path)
    await ask('GET', `/x/../auth/magic/${secret}`, {})
    for (const file of ['islet.db', 'islet.db-wal'])
      for (const text of [secret, cookie.slice(3)])
        assert.ok(!readFileSync(join(api.dataDir, file)).includes(text), file)
    assert.ok(api.logged.some((line) => line.includes('/auth/magic/…')))
    for (const line of api.logged) assert.ok(!line.includes(secret) && !line.includes(cookie.slice(3)), line)
  })

  test('ends with its sandbox', async () => {
    const gone = await api.createSandbox()
    const { url } = await link({}, gone.id)
    await api.call('DELETE', `/v1/sandboxes/${gone.id}`)
    assert.equal((await errorOf(await open(url))).code, 'link_not_found')
  })
})

test('behind a proxy, links, the redirect and the page have the public address', async () => {
  await using behind = await startTestApi({ publicUrl: 'https://islet.example.com/box' })
  const { id } = await behind.createSandbox()
  const made = await behind.call('POST', `/v1/sandboxes/${id}/links`, {})
  const { url, redirectUrl } = (await made.json()) as MagicLink
  const [, secret] = /^https:\/\/islet\.example\.com\/box\/auth\/magic\/([\w-]{43})$/.exec(url)!
  assert.equal(redirectUrl, '/play/')
  const opened = await open(`${behind.url}/auth/magic/${secret}`)
  assert.equal(opened.headers.get('location'), '/box/play/')
  const [set] = opened.headers.getSetCookie()
  assert.match(set!, /; Secure$/)
  const Cookie = set!.slice(0, set!.indexOf(';'))
  const statusOf = async (Origin: string) => {
    const sent = request(`${behind.url}/v1/session`, { method: 'DELETE', headers: { Cookie, Origin } }).end()
    const [message] = (await once(sent, 'response')) as [IncomingMessage]
    return message.resume().statusCode
  }
  assert.equal(await statusOf(behind.url), 401)
  assert.equal(await statusOf('https://islet.example.com'), 204)
})

test('/play/ is a page that loads nothing from elsewhere and is framed by nobody', async () => {
  const shown = await open(`${api.url}/play/`)
  assert.equal(shown.status, 200)
  assert.match(shown.headers.get('content-type')!, /^text\/html/)
  const policy = shown.headers.get('content-security-policy')!
  assert.match(policy, /^default-src 'none'; script-src 'self';/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.equal(shown.headers.get('cross-origin-opener-policy'), 'same-origin')
  const html = await shown.text()
  assert.doesNotMatch(html, /<script>|https?:|\/\//)
  for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const file = await open(`${api.url}/play/${path}`)
    assert.deepEqual([file.status, file.headers.get('x-content-type-options')], [200, 'nosniff'], path)
    assert.ok((await file.text()).length > 100)
  }
  const bare = await open(`${api.url}/play`)
  assert.deepEqual([bare.status, bare.headers.get('location')], [302, 'play/'])
  assert.equal((await open(`${api.url}/play/../../secret`)).status, 401)
  assert.equal((await open(`${api.url}/play/index.html`)).status, 401)
})

describe('the cookie', () => {
  let cookie: string
  before(async () => {
    cookie = await signIn()
  })

  test('is enough for our own page: reads with its header, the rest with its Origin', async () => {
    assert.equal((await ask('GET', own_(), page(cookie))).status, 200)
    const browser = { ...page(cookie), 'Sec-Fetch-Site': 'same-origin', Origin: api.url }
    assert.equal((await ask('GET', own_(), browser)).status, 200)
    assert.equal((await ask('PUT', `${own_()}/files?path=a`, browser, 'text')).status, 200)
    assert.equal((await ask('GET', `${own_()}/files?path=a`, page(cookie))).text, 'text')
    assert.equal((await ask('DELETE', `${own_()}/files?path=a`, browser)).status, 204)
    const { hostname, port } = new URL(api.url)
    const named = { ...browser, Host: `localhost:${port}`, Origin: `http://localhost:${port}` }
    assert.notEqual(hostname, 'localhost')
    assert.equal((await ask('GET', own_(), named)).status, 200)
  })

  test('reaches nothing but its sandbox, and makes no token or link', async () => {
    const browser = { ...page(cookie), Origin: api.url, 'Content-Type': 'application/json' }
    assert.equal((await ask('GET', `/v1/sandboxes/${other.id}`, browser)).status, 403)
    assert.equal((await ask('GET', '/v1/sandboxes', browser)).status, 403)
    for (const path of ['token', 'tokens', 'links'])
      assert.equal((await ask('POST', `${own_()}/${path}`, browser, '{}')).code, 'forbidden', path)
    assert.equal((await ask('GET', `${own_()}/tokens`, browser)).code, 'forbidden')
  })

  test('counts for no request that a page of another origin can send', async () => {
    const sent = { Cookie: `islet_session=${cookie}` }
    const origins = [
      FOREIGN,
      'null',
      api.url.replace('http:', 'https:'),
      `${api.url}0`,
      `${api.url}/`,
      'http://127.0.0.1',
    ]
    const attempts: [method: string, headers: Record<string, string>][] = [
      ['GET', {}],
      ['GET', { 'Sec-Fetch-Site': 'same-origin' }],
      ['GET', { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'navigate', ...HTML }],
      ['GET', { 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Mode': 'navigate', ...HTML }],
      ['HEAD', {}],
      ...['same-site', 'cross-site', 'none'].map((site): [string, Record<string, string>] => [
        'GET',
        { 'Sec-Fetch-Site': site, 'X-Islet-Page': '1' },
      ]),
      ...origins.map((Origin): [string, Record<string, string>] => ['GET', { Origin, 'X-Islet-Page': '1' }]),
      ...['POST', 'PUT', 'PATCH', 'DELETE'].flatMap((method): [string, Record<string, string>][] => [
        [method, {}],
        [method, { 'X-Islet-Page': '1' }],
        [method, { Origin: api.url, 'Sec-Fetch-Site': 'same-site' }],
        ...origins.map((Origin): [string, Record<string, string>] => [
          method,
          { Origin, 'X-Islet-Page': '1' },
        ]),
      ]),
    ]
    for (const [method, headers] of attempts) {
      const { status } = await ask(method, own_(), { ...sent, ...headers })
      assert.equal(status, 401, `${method} ${JSON.stringify(headers)}`)
    }
    assert.ok(await isSignedIn(cookie), 'nothing was done')
  })

  test('is not allowed across origins by a preflight, not even for the origins of ISLET_CORS_ORIGINS', async () => {
    for (const Origin of [FOREIGN, 'http://127.0.0.1:2']) {
      const preflight = {
        Origin,
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'x-islet-page',
      }
      const { headers } = await ask('OPTIONS', own_(), preflight)
      assert.ok(!/x-islet-page/i.test(String(headers['access-control-allow-headers'])))
      assert.equal(headers['access-control-allow-credentials'], undefined)
    }
  })

  test('opens a WebSocket for our own page only', async () => {
    const connect = (headers: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        const socket = new WebSocket(`${api.url.replace('http', 'ws')}${own_()}/signals`, ['islet'], {
          headers,
        })
        socket.on('open', () => {
          socket.terminate()
          resolve(101)
        })
        socket.on('unexpected-response', (sent, response) => {
          sent.destroy()
          resolve(response.statusCode!)
        })
        socket.on('error', reject)
      })
    const Cookie = `islet_session=${cookie}`
    assert.equal(await connect({ Cookie, Origin: api.url }), 101)
    const foreign: Record<string, string>[] = [
      {},
      { 'X-Islet-Page': '1' },
      { Origin: FOREIGN },
      { Origin: 'null' },
    ]
    for (const headers of foreign)
      assert.equal(await connect({ Cookie, ...headers }), 401, JSON.stringify(headers))
  })

  test('is refused beside a second one, which another page of the host may have set', async () => {
    const planted = await signIn(other.id)
    const both = { ...page(cookie), Cookie: `islet_session=${planted}; islet_session=${cookie}` }
    const refused = await ask('GET', '/v1/session', both)
    assert.equal(refused.status, 401)
    assert.match(refused.text, /several cookies/)
    const twice = { ...page(cookie), Cookie: `islet_session=${cookie}; islet_session=${cookie}` }
    assert.equal((await ask('GET', '/v1/session', twice)).status, 200)
  })

  test('does not replace another credential that is wrong', async () => {
    for (const Authorization of ['Bearer wrong', 'Basic eDp5', ''])
      assert.equal((await ask('GET', own_(), { ...page(cookie), Authorization })).status, 401, Authorization)
  })

  test('ends when the page signs out: the token is revoked and the cookie removed', async () => {
    const leaving = await signIn()
    const foreign = await ask('DELETE', '/v1/session', { ...page(leaving), Origin: FOREIGN })
    assert.equal(foreign.status, 401)
    assert.ok(await isSignedIn(leaving))
    const left = await ask('DELETE', '/v1/session', { ...page(leaving), Origin: api.url })
    assert.equal(left.status, 204)
    const [set] = left.headers['set-cookie']!
    assert.equal(set, 'islet_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0')
    assert.ok(!(await isSignedIn(leaving)))
    assert.ok(await isSignedIn(cookie))
  })
})
