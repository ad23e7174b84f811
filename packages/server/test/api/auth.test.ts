import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { type ErrorBody, ROUTES, type Route } from '@islet/contract'
import { startTestApi, TEST_KEY, type TestApi } from '../support/server.ts'

describe('the key', () => {
  let api: TestApi
  before(async () => {
    api = await startTestApi()
  })
  after(() => api[Symbol.asyncDispose]())

  const get = (path: string, authorization?: string) =>
    fetch(api.url + path, { headers: authorization === undefined ? {} : { authorization } })

  it('is asked for on every route but the open ones', async () => {
    for (const { method, path, open } of Object.values<Route>(ROUTES)) {
      const response = await fetch(api.url + path.replace(/\{\w+\}/g, 'x'), { method })
      assert.equal(response.status === 401, !open, `${method} ${path}`)
      await response.body?.cancel()
    }
    for (const path of ['/', '/openapi.json', '/docs']) assert.equal((await get(path)).status, 200)
    for (const path of ['/nope', '/health/x', '/docs/', '//docs'])
      assert.equal((await get(path)).status, 401, path)
  })

  it('is refused with how to send it', async () => {
    const response = await get('/v1/info')
    assert.equal(response.headers.get('www-authenticate'), 'Bearer realm="islet"')
    assert.equal(((await response.json()) as ErrorBody).error.code, 'unauthorized')
  })

  it('is the only thing that opens', async () => {
    const wrong = [
      TEST_KEY,
      `Basic ${TEST_KEY}`,
      'Bearer',
      'Bearer ',
      `Bearer ${TEST_KEY}x`,
      `Bearer x ${TEST_KEY}`,
      'Bearer ,',
    ]
    for (const authorization of wrong)
      assert.equal((await get('/v1/info', authorization)).status, 401, authorization)
    for (const scheme of ['Bearer', 'bearer', 'BEARER ']) {
      assert.equal((await get('/v1/info', `${scheme} ${TEST_KEY}`)).status, 200, scheme)
    }
  })

  it('is not taken from the address, a cookie, or a WebSocket protocol of an ordinary request', async () => {
    assert.equal((await get(`/v1/info?key=${TEST_KEY}`)).status, 401)
    assert.equal((await get(`/v1/info?access_token=${TEST_KEY}`)).status, 401)
    const headers = { cookie: `key=${TEST_KEY}`, 'sec-websocket-protocol': `islet.bearer.${TEST_KEY}` }
    assert.equal((await fetch(`${api.url}/v1/info`, { headers })).status, 401)
  })
})

describe('pages of another origin', () => {
  const origin = 'https://app.example.com'
  const ask = (api: TestApi, from: string, method = 'OPTIONS') =>
    fetch(`${api.url}/v1/info`, {
      method,
      headers: { origin: from, 'access-control-request-method': 'GET', authorization: `Bearer ${TEST_KEY}` },
    })
  const allowed = (response: Response) => response.headers.get('access-control-allow-origin')

  it('are allowed where a setting names them, and no others', async () => {
    await using api = await startTestApi({ corsOrigins: `${origin}, http://localhost:5173` })
    const question = await ask(api, origin)
    assert.equal(question.status, 204)
    assert.equal(allowed(question), origin)
    assert.match(question.headers.get('access-control-allow-headers') ?? '', /Authorization/)
    const answer = await ask(api, 'http://localhost:5173', 'GET')
    assert.equal(answer.status, 200)
    assert.equal(allowed(answer), 'http://localhost:5173')
    assert.equal(answer.headers.get('vary'), 'Origin')
    const refused = await fetch(`${api.url}/v1/info`, { headers: { origin } })
    assert.deepEqual([refused.status, allowed(refused)], [401, origin], 'the page can read why')
    for (const other of ['https://app.example.com.evil.example', 'http://app.example.com', 'null']) {
      assert.equal(allowed(await ask(api, other)), null, other)
      assert.equal(allowed(await ask(api, other, 'GET')), null, other)
    }
  })

  it('are not allowed by default', async () => {
    await using api = await startTestApi()
    assert.equal(allowed(await ask(api, origin)), null)
    assert.equal(allowed(await ask(api, origin, 'GET')), null)
  })
})

describe('the Host header', () => {
  const statusFor = (api: TestApi, host: string | undefined) =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: `Bearer ${TEST_KEY}`, ...(host !== undefined && { host }) }
      const sent = request(
        `http://127.0.0.1:${api.port}/v1/info`,
        { headers, setHost: false },
        (response) => {
          response.resume()
          resolve(response.statusCode!)
        },
      )
      sent.on('error', reject).end()
    })

  it('must be a loopback name when the server listens on loopback', async () => {
    await using api = await startTestApi()
    for (const host of [
      'localhost',
      `localhost:${api.port}`,
      '127.0.0.1:1',
      '[::1]:7400',
      '127.8.8.8',
      'LOCALHOST',
    ]) {
      assert.equal(await statusFor(api, host), 200, host)
    }
    for (const host of [
      'evil.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example:80',
      '10.0.0.1',
      '127.evil',
    ]) {
      assert.equal(await statusFor(api, host), 403, host)
    }
  })

  it('may be anything when the server listens on the network', async () => {
    await using api = await startTestApi({ host: '0.0.0.0' })
    assert.equal(await statusFor(api, 'islet.example'), 200)
  })

  it('must be there and make sense', async () => {
    await using api = await startTestApi({ host: '0.0.0.0' })
    assert.equal(await statusFor(api, undefined), 400)
    assert.equal(await statusFor(api, 'a b/c'), 400)
  })
})
