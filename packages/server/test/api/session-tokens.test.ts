import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  type CreatedSandbox,
  type CreateSessionToken,
  DEFAULTS,
  LIMITS,
  newId,
  type Session,
  type SessionToken,
  type SessionTokenInfo,
} from '@islet/contract'
import { WebSocket } from 'ws'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

let api: TestApi
let own: CreatedSandbox
let other: CreatedSandbox
before(async () => {
  api = await startTestApi()
  own = await api.createSandbox()
  other = await api.createSandbox()
})
after(() => api[Symbol.asyncDispose]())

const DAY_MS = 24 * 3_600_000
const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })
const tokensOf = (id: string) => `/v1/sandboxes/${id}/tokens`

async function make(input: CreateSessionToken = {}, id = own.id): Promise<SessionToken> {
  const response = await api.call('POST', tokensOf(id), input)
  assert.equal(response.status, 201)
  return (await response.json()) as SessionToken
}

async function list(id = own.id): Promise<SessionTokenInfo[]> {
  return ((await (await api.call('GET', tokensOf(id))).json()) as { tokens: SessionTokenInfo[] }).tokens
}

const revoke = async ({ sandboxId, id }: SessionToken): Promise<void> => {
  assert.equal((await api.call('DELETE', `${tokensOf(sandboxId)}/${id}`)).status, 204)
}

const statusWith = async (token: string, path = `/v1/sandboxes/${own.id}`): Promise<number> =>
  (await api.call('GET', path, undefined, bearer(token))).status

/** Waits until what was open has been closed; answers with the last message and the close code of the WebSocket. */
async function openAll(
  token: string,
): Promise<{ closed: Promise<[string, number]>; broken: Promise<string[]> }> {
  const { id: pid } = await api.start(own.id, { command: 'sleep 600' })
  const url = `${api.url.replace('http', 'ws')}/v1/sandboxes/${own.id}/processes/${pid}/attach`
  const socket = new WebSocket(url, ['islet', `islet.bearer.${token}`])
  let last = ''
  socket.on('message', (data, isBinary) => {
    if (!isBinary) last = String(data)
  })
  await once(socket, 'open')
  const follow = await api.call('GET', `/v1/sandboxes/${own.id}/events?follow=true`, undefined, bearer(token))
  const read = (response: Response) =>
    response.text().then(
      () => 'ended',
      () => 'broken',
    )
  const exec = api.call(
    'POST',
    `/v1/sandboxes/${own.id}/exec`,
    { command: 'echo > began; sleep 600' },
    bearer(token),
  )
  const began = () => api.call('GET', `/v1/sandboxes/${own.id}/files?path=began`)
  await until(async () => (await began()).ok)
  return {
    closed: once(socket, 'close').then(([code]) => [last, code as number]),
    broken: Promise.all([
      read(follow),
      exec.then(
        () => 'ended',
        () => 'broken',
      ),
    ]),
  }
}

describe('a session token', () => {
  test('is shown once, and lives for 7 days unless told', async () => {
    const made = await make({ description: 'my app' })
    assert.match(made.token, /^st_[\w-]{43}$/)
    assert.match(made.id, /^tok-[a-z0-9]{20}$/)
    assert.deepEqual([made.sandboxId, made.description], [own.id, 'my app'])
    assert.equal(Date.parse(made.expiresAt) - Date.parse(made.createdAt), DEFAULTS.sessionTokenMs)
    const { token, ...shown } = made
    const info = { ...shown, lastUsedAt: null }
    assert.deepEqual(await (await api.call('GET', `${tokensOf(own.id)}/${made.id}`)).json(), info)
    assert.deepEqual((await list())[0], info)
    const brief = await make({ expiresIn: '1h' })
    assert.equal(Date.parse(brief.expiresAt) - Date.parse(brief.createdAt), 3_600_000)
    assert.equal((await make()).description, null)
  })

  test('is refused with a clear error if its options are wrong', async () => {
    const wrong = [
      { expiresIn: 0 },
      { expiresIn: '366d' },
      { expiresIn: 'soon' },
      { expiresIn: null },
      { ttl: 1 },
    ]
    const long = { description: 'x'.repeat(LIMITS.descriptionLength + 1) }
    for (const body of [...wrong, long, { description: 'a\0b' }]) {
      const { status, code } = await errorOf(await api.call('POST', tokensOf(own.id), body))
      assert.deepEqual([status, code], [400, 'bad_request'], JSON.stringify(body).slice(0, 80))
    }
    assert.equal((await api.call('POST', tokensOf(own.id), { expiresIn: 365 * DAY_MS })).status, 201)
    const missing = await errorOf(await api.call('POST', tokensOf(newId('sandbox')), {}))
    assert.equal(missing.code, 'sandbox_not_found')
    for (const id of [newId('sessionToken'), 'nonsense', '%00', `tok-${'x'.repeat(5000)}`]) {
      const one = `${tokensOf(own.id)}/${id}`
      assert.equal((await errorOf(await api.call('GET', one))).code, 'token_not_found')
      assert.equal((await api.call('DELETE', one)).status, 204)
    }
  })

  test('reaches its own sandbox and no other', async () => {
    const { id, token, expiresAt } = await make()
    assert.equal(await statusWith(token), 200)
    assert.equal(await statusWith(token, `/v1/sandboxes/${other.id}`), 403)
    assert.equal(await statusWith(token, '/v1/sandboxes'), 403)
    const ran = await api.call('POST', `/v1/sandboxes/${own.id}/exec`, { command: 'echo hi' }, bearer(token))
    assert.equal(((await ran.json()) as { stdout: string }).stdout, 'hi\n')
    const session = (await (await api.call('GET', '/v1/session', undefined, bearer(token))).json()) as Session
    assert.deepEqual(session, { sandboxId: own.id, name: null, tokenId: id, expiresAt })
    assert.equal((await api.call('GET', '/v1/session')).status, 403, 'the key has no sandbox')
  })

  test('makes no token or link, and lists, reads and revokes none; nor does a short-lived token', async () => {
    const made = await make()
    const one = `${tokensOf(own.id)}/${made.id}`
    const asked = [
      ['POST', `/v1/sandboxes/${own.id}/token`],
      ['POST', tokensOf(own.id)],
      ['GET', tokensOf(own.id)],
      ['GET', one],
      ['DELETE', one],
      ['POST', `/v1/sandboxes/${own.id}/links`],
    ] as const
    for (const [method, path] of asked)
      for (const token of [made.token, own.token]) {
        const body = method === 'POST' ? {} : undefined
        const refused = await errorOf(await api.call(method, path, body, bearer(token)))
        assert.deepEqual([refused.status, refused.code], [403, 'forbidden'], `${method} ${path}`)
        assert.match(refused.hint ?? '', /API key/)
      }
    assert.equal(await statusWith(made.token), 200)
  })

  test('says when it was last used', async () => {
    const { id, token } = await make()
    const before = Date.now()
    assert.equal(await statusWith(token), 200)
    const { lastUsedAt } = (await list()).find((one) => one.id === id)!
    assert.ok(Date.parse(lastUsedAt!) >= before - 1)
  })

  test('is kept as a hash only, and is in no line of the log', async () => {
    const { token } = await make()
    await statusWith(token)
    await statusWith(`${token}x`)
    for (const file of ['islet.db', 'islet.db-wal'])
      assert.ok(!readFileSync(join(api.dataDir, file)).includes(token.slice(3)), file)
    for (const line of api.logged) assert.ok(!line.includes(token.slice(3)), line)
  })
})

describe('a revoked session token', () => {
  test('is refused at once, on a kept connection too; revoking again does nothing', async () => {
    const made = await make()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = () =>
      new Promise<{ status: number; port: number }>((resolve, reject) => {
        const request = get(
          `${api.url}/v1/sandboxes/${own.id}`,
          { agent, ...bearer(made.token) },
          (response) => {
            const port = response.socket.localPort!
            response.resume().once('end', () => resolve({ status: response.statusCode!, port }))
          },
        )
        request.on('error', reject)
      })
    const before = await ask()
    assert.equal(before.status, 200)
    await revoke(made)
    const after = await ask()
    agent.destroy()
    assert.deepEqual(after, { status: 401, port: before.port })
    await revoke(made)
    assert.equal(
      (await errorOf(await api.call('GET', `${tokensOf(own.id)}/${made.id}`))).code,
      'token_not_found',
    )
    assert.ok(!(await list()).some(({ id }) => id === made.id))
  })

  test('leaves nothing of its own open: WebSockets, event streams and running calls end', async () => {
    const made = await make()
    const kept = await make()
    const { closed, broken } = await openAll(made.token)
    const survivor = await api.call(
      'GET',
      `/v1/sandboxes/${own.id}/events?follow=true`,
      undefined,
      bearer(kept.token),
    )
    await revoke(made)
    const [last, code] = await closed
    assert.equal(code, 4401)
    assert.match(last, /"code":"unauthorized".*revoked/)
    assert.deepEqual(await broken, ['broken', 'broken'])
    const reader = survivor.body!.getReader()
    assert.equal((await reader.read()).done, false)
    await reader.cancel()
  })

  test('leaves no signed URL that it made', async () => {
    const made = await make()
    await api.call('PUT', `/v1/sandboxes/${own.id}/files?path=signed`, 'text')
    const sign = async (init?: RequestInit) => {
      const body = { path: 'signed', method: 'GET', expiresIn: '2d' }
      const response = await api.call('POST', `/v1/sandboxes/${own.id}/files/sign`, body, init)
      return (await response.json()) as { url: string; expiresAt: string }
    }
    const byToken = await sign(bearer(made.token))
    const byKey = await sign()
    assert.equal((await fetch(byToken.url)).status, 200)
    const brief = await make({ expiresIn: '10m' })
    assert.equal((await sign(bearer(brief.token))).expiresAt <= brief.expiresAt, true)
    await revoke(made)
    assert.equal((await errorOf(await fetch(byToken.url))).code, 'unauthorized')
    assert.equal((await fetch(byKey.url)).status, 200)
  })

  test('can be the one that asks: DELETE /v1/session', async () => {
    const { token } = await make()
    assert.equal((await api.call('DELETE', '/v1/session', undefined, bearer(token))).status, 204)
    assert.equal(await statusWith(token), 401)
    const jwt = await errorOf(await api.call('DELETE', '/v1/session', undefined, bearer(own.token)))
    assert.equal(jwt.code, 'not_supported')
  })
})

test('an expired session token is refused, closes what it has open, and is listed until it is revoked', async () => {
  const made = await make({ expiresIn: '3s' })
  const { closed, broken } = await openAll(made.token)
  const [last, code] = await closed
  assert.equal(code, 4401)
  assert.match(last, /"code":"token_expired"/)
  assert.deepEqual(await broken, ['broken', 'broken'])
  const refused = await errorOf(
    await api.call('GET', `/v1/sandboxes/${own.id}`, undefined, bearer(made.token)),
  )
  assert.deepEqual([refused.status, refused.code], [401, 'token_expired'])
  assert.ok((await list()).some(({ id }) => id === made.id))
  await revoke(made)
  assert.ok(!(await list()).some(({ id }) => id === made.id))
})

test('session tokens end with their sandbox, and the token that deletes it gets its answer', async () => {
  const gone = await api.createSandbox()
  const made = await make({}, gone.id)
  const deleted = await api.call('DELETE', `/v1/sandboxes/${gone.id}`, undefined, bearer(made.token))
  assert.equal(deleted.status, 200)
  assert.equal(await statusWith(made.token, `/v1/sandboxes/${gone.id}`), 401)
  assert.deepEqual(await list(gone.id), [])
  for (const path of ['tokens', 'token', 'links']) {
    const refused = await errorOf(await api.call('POST', `/v1/sandboxes/${gone.id}/${path}`, {}))
    assert.equal(refused.code, 'invalid_state', path)
  }
})

test('a copy of a sandbox has none of its session tokens', async () => {
  const { token } = await make()
  const checkpoint = await api.call('POST', `/v1/sandboxes/${own.id}/checkpoints`, { name: 'with-token' })
  const { id } = (await checkpoint.json()) as { id: string }
  const copy = (await (
    await api.call('POST', `/v1/checkpoints/${id}/sandboxes`, {})
  ).json()) as CreatedSandbox
  assert.deepEqual(await list(copy.id), [])
  assert.equal(await statusWith(token, `/v1/sandboxes/${copy.id}`), 403)
  assert.equal((await api.call('POST', `/v1/sandboxes/${own.id}/checkpoints/${id}/restore`)).status, 200)
  assert.equal(await statusWith(token), 200, 'a restore keeps them')
})

test('a sandbox has a bounded number of them, without those that have expired', async () => {
  const full = await api.createSandbox()
  const expiring = await make({ expiresIn: '1s' }, full.id)
  for (let n = 1; n < LIMITS.sessionTokens; n++) await make({}, full.id)
  await until(() => Date.parse(expiring.expiresAt) <= Date.now())
  await make({}, full.id)
  assert.equal((await list(full.id)).length, LIMITS.sessionTokens)
  const refused = await errorOf(await api.call('POST', tokensOf(full.id), {}))
  assert.deepEqual([refused.status, refused.code], [429, 'limit_exceeded'])
})
