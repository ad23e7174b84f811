import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import type { Preview, SessionToken } from '@islet/contract'
import { WebSocket } from 'ws'
import { get, type Lab, openLab, type Shown } from '../support/preview.ts'
import { TEST_KEY } from '../support/server.ts'

const TOKEN = 'a-token-of-good-length'
const AUTH = { type: 'token', token: TOKEN } as const
const HTML = { Accept: 'text/html' }

it('never passes our keys and tokens on to a program, with or without auth of the preview', async (t) => {
  const lab = await openLab()
  t.after(() => lab[Symbol.asyncDispose]())
  const tokenOf = async (id: string) =>
    ((await (await lab.api.call('POST', `/v1/sandboxes/${id}/token`, {})).json()) as { token: string }).token
  const other = await lab.api.createSandbox()
  await lab.preview({ port: 1, authConfig: AUTH })
  const { url } = await lab.show((incoming, outgoing) => void outgoing.end(JSON.stringify(incoming.headers)))
  const seenBy = async (headers: Record<string, string>): Promise<Record<string, string>> =>
    JSON.parse((await get(url, { headers })).text)
  const session = await lab.api.call('POST', `/v1/sandboxes/${other.id}/tokens`, {})
  const { token: sessionToken } = (await session.json()) as SessionToken
  for (const secret of [
    TEST_KEY,
    TOKEN,
    await tokenOf(lab.sandboxId),
    await tokenOf(other.id),
    sessionToken,
  ]) {
    const basic = `Basic ${Buffer.from(`user:${secret}`).toString('base64')}`
    for (const Authorization of [`Bearer ${secret}`, `token ${secret}`, secret, basic])
      assert.equal((await seenBy({ Authorization })).authorization, undefined)
    const protocols = `chat, islet.bearer.${secret}, ${secret}`
    assert.equal((await seenBy({ 'Sec-WebSocket-Protocol': protocols }))['sec-websocket-protocol'], 'chat')
  }
  const own = { Authorization: 'Bearer of-the-program', 'Sec-WebSocket-Protocol': 'a,b' }
  const seen = await seenBy(own)
  assert.deepEqual([seen.authorization, seen['sec-websocket-protocol']], Object.values(own))
})

describe('a preview that asks for a token', () => {
  let lab: Lab
  let shown: Shown
  let cookie: string
  before(async () => {
    lab = await openLab()
    shown = await lab.show(
      (incoming, outgoing) => {
        const planted = ['islet_session=st_planted', ' islet_session=x; Path=/play', '=islet_session=x']
        outgoing.setHeader('Set-Cookie', ['own=1', `${cookie}=stolen`, ...planted])
        outgoing.end(JSON.stringify({ url: incoming.url, headers: incoming.headers }))
      },
      { authConfig: AUTH },
    )
    cookie = `islet_preview_${shown.port}_${lab.sandboxId}`
  })
  after(() => lab[Symbol.asyncDispose]())

  const seenBy = async (headers: Record<string, string>, path = '/') => {
    const answer = await get(shown.url + path, { headers })
    assert.equal(answer.status, 200, answer.text)
    return JSON.parse(answer.text) as { url: string; headers: Record<string, string> }
  }

  it('tells a token once: the given one, or a random one', async () => {
    assert.equal(shown.token, TOKEN)
    const random = await lab.preview({ port: 1, authConfig: { type: 'token' } })
    assert.match(random.token!, /^[\w-]{43}$/)
    const response = await lab.api.call('GET', `/v1/sandboxes/${lab.sandboxId}/previews`)
    const { previews } = (await response.json()) as { previews: Preview[] }
    for (const preview of previews) {
      assert.deepEqual(preview.authConfig, { type: 'token' })
      assert.equal(preview.token, undefined)
    }
    assert.ok(!lab.api.logged.some((line) => line.includes(TOKEN)))
  })

  it('refuses a missing or wrong token: a page for browsers, an error for programs', async () => {
    const page = await get(shown.url, { headers: HTML })
    assert.equal(page.status, 401)
    assert.match(page.text, /<h1>/)
    assert.ok(!page.text.includes('refresh'))
    for (const headers of [
      {},
      { Authorization: `Bearer ${TOKEN}x` },
      { Cookie: `${cookie}=no; other=${TOKEN}` },
    ]) {
      const error = await get(`${shown.url}/?islet_token=wrong`, { headers: { ...headers } })
      assert.equal(error.status, 401)
      assert.equal(JSON.parse(error.text).error.code, 'unauthorized')
      assert.match(error.message.headers['www-authenticate']!, /^Bearer/)
    }
  })

  it('takes the token as bearer, cookie and in the query, and shows the program none of it', async () => {
    const byBearer = await seenBy({ Authorization: `bearer ${TOKEN}` })
    assert.equal(byBearer.headers.authorization, undefined)
    const byCookie = await seenBy({
      Cookie: `a=b; ${cookie}=old; ${cookie}=${TOKEN}; islet_preview_9_x=y;c=d; islet_session=st_secret`,
      Authorization: 'Bearer of-the-program',
    })
    assert.equal(byCookie.headers.cookie, 'a=b; c=d')
    assert.equal(byCookie.headers.authorization, 'Bearer of-the-program')
    const byQuery = await seenBy({}, `/p?a=1&islet%5Ftoken=${TOKEN}&b=%20`)
    assert.equal(byQuery.url, '/p?a=1&b=%20')
    const all = JSON.stringify([byBearer, byCookie, byQuery])
    assert.ok(!all.includes(TOKEN) && !all.includes('islet'), all)
  })

  it("takes the admin key and the sandbox's own token as bearer, and no other sandbox's", async () => {
    const other = await lab.api.createSandbox()
    const tokenOf = async (id: string): Promise<string> => {
      const response = await lab.api.call('POST', `/v1/sandboxes/${id}/token`, {})
      return ((await response.json()) as { token: string }).token
    }
    for (const bearer of [TEST_KEY, await tokenOf(lab.sandboxId)]) {
      const { headers } = await seenBy({ Authorization: `Bearer ${bearer}` })
      assert.equal(headers.authorization, undefined)
    }
    const refused = await get(shown.url, { headers: { Authorization: `Bearer ${await tokenOf(other.id)}` } })
    assert.equal(refused.status, 401)
  })

  it('takes a session token of its sandbox as bearer, until it is revoked: what it has open is closed then', async () => {
    const path = `/v1/sandboxes/${lab.sandboxId}/tokens`
    const made = (await (await lab.api.call('POST', path, {})).json()) as SessionToken
    const Authorization = `Bearer ${made.token}`
    assert.equal((await seenBy({ Authorization })).headers.authorization, undefined)
    const endless = await lab.show((_, outgoing) => void outgoing.write('began'), { authConfig: AUTH })
    const open = await fetch(endless.url, { headers: { Authorization } })
    const broken = assert.rejects(open.text())
    assert.equal((await lab.api.call('DELETE', `${path}/${made.id}`)).status, 204)
    await broken
    assert.equal((await get(shown.url, { headers: { Authorization } })).status, 401)
  })

  it('never shows the cookie of a magic link to the program, and takes none as its own', async () => {
    const made = await lab.api.call('POST', `/v1/sandboxes/${lab.sandboxId}/tokens`, {})
    const Cookie = `islet_session=${((await made.json()) as SessionToken).token}`
    assert.equal((await get(shown.url, { headers: { Cookie } })).status, 401)
    const { headers } = await seenBy({ Authorization: `Bearer ${TOKEN}`, Cookie: `${Cookie}; a=b` })
    assert.equal(headers.cookie, 'a=b')
    assert.equal((await seenBy({ Authorization: `Bearer ${TOKEN}`, Cookie })).headers.cookie, undefined)
  })

  it('gives a browser a cookie and sends it on to the same address without the token', async () => {
    const opened = await get(`${shown.url}/deep/?x=1&islet_token=${TOKEN}`, { headers: HTML })
    assert.equal(opened.status, 302)
    assert.equal(opened.message.headers.location, '/deep/?x=1')
    const [set] = opened.message.headers['set-cookie']!
    assert.equal(set, `${cookie}=${TOKEN}; Path=/; HttpOnly; SameSite=Lax`)
    for (const path of ['//evil.example/x', '/\\evil.example', '///evil.example']) {
      const { message } = await get(`${shown.url}${path}?islet_token=${TOKEN}`, {
        headers: HTML,
        path: `${path}?islet_token=${TOKEN}`,
      })
      assert.equal(message.statusCode, 302)
      assert.equal(new URL(message.headers.location!, shown.url).host, new URL(shown.url).host)
    }
    const posted = await get(`${shown.url}/?islet_token=${TOKEN}`, { method: 'POST', headers: HTML })
    assert.equal(posted.status, 200)
    assert.deepEqual(posted.message.headers['set-cookie'], [
      'own=1',
      `${cookie}=${TOKEN}; Path=/; HttpOnly; SameSite=Lax`,
    ])
  })

  it('asks for it on WebSockets too', async () => {
    const url = shown.url.replace('http', 'ws')
    const statusOf = (address: string, headers: Record<string, string>) =>
      new Promise<number>((resolve) => {
        const socket = new WebSocket(address, { headers })
        socket.on('unexpected-response', (_request, response) => {
          resolve(response.statusCode!)
          socket.terminate()
        })
        socket.on('error', () => {})
      })
    // The program answers as to any other request: it was reached.
    assert.equal(await statusOf(url, {}), 401)
    assert.equal(await statusOf(url, { Cookie: `${cookie}=wrong` }), 401)
    assert.equal(await statusOf(url, { Cookie: `${cookie}=${TOKEN}` }), 200)
    assert.equal(await statusOf(`${url}/?islet_token=${TOKEN}`, {}), 200)
    assert.equal(await statusOf(url, { Authorization: `Bearer ${TOKEN}` }), 200)
  })

  it('takes a cookie from its own pages alone: browsers send it along from those of its neighbours', async () => {
    const { host, port } = new URL(shown.url)
    const Cookie = `${cookie}=${TOKEN}`
    for (const Origin of [
      'null',
      'http://127.0.0.1:1',
      `http://localhost:${port}`,
      'https://evil.example',
      'x',
    ])
      assert.equal((await get(shown.url, { headers: { Cookie, Origin } })).status, 401, Origin)
    assert.equal((await get(shown.url, { headers: { Cookie, Origin: `http://${host}` } })).status, 200)
    const Authorization = `Bearer ${TOKEN}`
    assert.equal(
      (await get(shown.url, { headers: { Authorization, Origin: 'https://own.example' } })).status,
      200,
    )
    const stranger = new WebSocket(shown.url.replace('http', 'ws'), {
      headers: { Cookie },
      origin: 'http://127.0.0.1:1',
    })
    assert.match(String((await once(stranger, 'error'))[0]), /401/)
  })

  it('takes no cookie along with a script or an image of a neighbour, but lets people follow a link', async () => {
    const Cookie = `${cookie}=${TOKEN}`
    const from = (site: string, mode: string) =>
      get(shown.url, { headers: { Cookie, 'Sec-Fetch-Site': site, 'Sec-Fetch-Mode': mode } })
    for (const site of ['same-site', 'cross-site']) {
      assert.equal((await from(site, 'no-cors')).status, 401)
      assert.equal((await from(site, 'navigate')).status, 200)
    }
    for (const site of ['same-origin', 'none']) assert.equal((await from(site, 'no-cors')).status, 200)
  })

  it('tells the program no token by the page that a request came from', async () => {
    const open = await lab.show((incoming, outgoing) => void outgoing.end(incoming.headers.referer))
    const { text } = await get(open.url, {
      headers: { Referer: `${open.url}/a?x=1&islet_token=${TOKEN}&y=2` },
    })
    assert.equal(text, `${open.url}/a?x=1&y=2`)
  })

  it('keeps the key away from a program whose preview is open', async () => {
    const open = await lab.show((incoming, outgoing) => void outgoing.end(JSON.stringify(incoming.headers)))
    const { text } = await get(`${open.url}/?islet_token=x`, {
      headers: { Authorization: `Bearer ${TEST_KEY}`, Cookie: `${cookie}=${TOKEN}` },
    })
    assert.ok(!/authorization|cookie/.test(text), text)
  })

  it('cuts off visitors admitted before the token was changed', async () => {
    const open = await lab.show((_incoming, outgoing) => void outgoing.write('for ever'))
    const response = await fetch(open.url)
    const reader = response.body!.getReader()
    await reader.read()
    await lab.preview({ port: open.port, authConfig: AUTH })
    await assert.rejects(reader.read())
    assert.equal((await get(open.url)).status, 401)
    assert.equal((await lab.preview({ port: open.port, keep: true })).authConfig?.type, 'token')
    assert.equal((await get(open.url)).status, 401)
  })
})
