import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import {
  type CreatedSandbox,
  type ErrorBody,
  newId,
  ROUTES,
  type Route,
  type SandboxToken,
} from '@islet/contract'
import { WebSocket } from 'ws'
import { Tokens } from '../../src/tokens.ts'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

let api: TestApi
let own: CreatedSandbox
let other: CreatedSandbox
let expired: string
before(async () => {
  api = await startTestApi()
  own = await api.createSandbox()
  other = await api.createSandbox()
  expired = (await Tokens.open(api.dataDir)).issue(own.id, { lifetimeMs: -1000 }).token
})
after(() => api[Symbol.asyncDispose]())

const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })
const routes = Object.entries<Route>(ROUTES).filter(([, { open }]) => !open)
/** The ids do not exist, so no route does harm; the route that ends the sandbox comes last. */
const ordinary = routes
  .filter(([, { websocket }]) => !websocket)
  .sort(([one], [two]) => Number(one === 'deleteSandbox') - Number(two === 'deleteSandbox'))
const sockets = routes.filter(([, { websocket }]) => websocket)

const ids: Record<string, string> = {
  pid: newId('process'),
  tid: newId('terminal'),
  wid: newId('watcher'),
  oid: newId('overlay'),
  tokenId: newId('sessionToken'),
  cid: newId('checkpoint'),
}
const pathOf = ({ path }: Route, sandboxId: string) =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'id' ? sandboxId : (ids[name] ?? 'x')))

async function ask({ method, body, path }: Route, sandboxId: string, token: string) {
  const sent = method === 'GET' || body === undefined ? undefined : body === 'bytes' ? 'x' : {}
  const response = await api.call(method, pathOf({ path } as Route, sandboxId), sent, bearer(token))
  const text = await response.text()
  const code = response.ok ? undefined : (JSON.parse(text) as ErrorBody).error.code
  return { status: response.status, code }
}

/** Answers with the status of the refusal, or 101. */
function upgrade(route: Route, sandboxId: string, show: { header?: string; protocol?: string }) {
  return new Promise<number>((resolve, reject) => {
    const url = api.url.replace('http', 'ws') + pathOf(route, sandboxId)
    const protocols = show.protocol === undefined ? [] : ['islet', `islet.bearer.${show.protocol}`]
    const socket = new WebSocket(url, protocols, show.header === undefined ? {} : bearer(show.header))
    socket.on('open', () => {
      socket.terminate()
      resolve(101)
    })
    socket.on('unexpected-response', (request, response) => {
      request.destroy()
      resolve(response.statusCode!)
    })
    socket.on('error', reject)
  })
}

describe('every route of a sandbox', () => {
  test("is closed to another sandbox's token, to one that has expired, and without any", async () => {
    for (const [name, route] of ordinary) {
      const isOfSandbox = route.path.includes('{id}')
      const expiredAnswer = await ask(route, own.id, expired)
      assert.deepEqual(expiredAnswer, { status: 401, code: 'token_expired' }, name)
      const { status } = await fetch(api.url + pathOf(route, own.id), { method: route.method })
      assert.equal(status, 401, name)
      if (route.ofCaller) continue
      const answer = await ask(route, isOfSandbox ? own.id : '', other.token)
      assert.deepEqual(answer, { status: 403, code: 'forbidden' }, name)
    }
  })

  test('is open to its own token, and no route of the server is', async () => {
    for (const [name, route] of ordinary) {
      const { status } = await ask(route, own.id, own.token)
      const isOfSandbox = (route.path.includes('{id}') && !route.keyOnly) || route.ofCaller
      assert.equal(status === 403, !isOfSandbox, `${name}: ${status}`)
      assert.notEqual(status, 401, name)
    }
    own = await api.createSandbox()
    expired = (await Tokens.open(api.dataDir)).issue(own.id, { lifetimeMs: -1000 }).token
  })

  test('that is a WebSocket likewise, by header and by protocol', async () => {
    assert.ok(sockets.length > 0)
    for (const [name, route] of sockets) {
      for (const way of ['header', 'protocol'] as const) {
        assert.ok(![401, 403].includes(await upgrade(route, own.id, { [way]: own.token })), `${name} ${way}`)
        assert.equal(await upgrade(route, own.id, { [way]: other.token }), 403, `${name} ${way}`)
        assert.equal(await upgrade(route, own.id, { [way]: expired }), 401, `${name} ${way}`)
      }
      assert.equal(await upgrade(route, own.id, {}), 401, name)
    }
  })
})

describe('a token', () => {
  test('can turn the network of its sandbox off, and not on', async () => {
    const patch = (enabled: boolean, init?: RequestInit) =>
      api.call('PATCH', `/v1/sandboxes/${other.id}`, { network: { enabled } }, init)
    const refused = await errorOf(await patch(true, bearer(other.token)))
    assert.deepEqual([refused.status, refused.code], [403, 'forbidden'])
    assert.match(`${refused.message} ${refused.hint}`, /network.*API key/)
    assert.equal((await patch(false, bearer(other.token))).status, 200, 'it is off')
    // The engine of these tests has the network of the machine.
    assert.equal((await errorOf(await patch(true))).code, 'not_supported')
    const record = await api.call('GET', `/v1/sandboxes/${other.id}`)
    assert.equal(((await record.json()) as CreatedSandbox).network.enabled, false)
  })

  test('changes neither the name nor the project of its sandbox, and does not learn whether a name is taken', async () => {
    const path = `/v1/sandboxes/${other.id}`
    const named = { name: 'prod-build', project: 'shop' }
    assert.equal((await api.call('PATCH', `/v1/sandboxes/${own.id}`, named)).status, 200)
    const refusals = [{ name: 'prod-build' }, { name: 'free' }, { name: null }, { project: 'shop' }]
    for (const body of refusals) {
      const refused = await errorOf(await api.call('PATCH', path, body, bearer(other.token)))
      assert.deepEqual([refused.status, refused.code], [403, 'forbidden'], JSON.stringify(body))
      assert.match(`${refused.message} ${refused.hint}`, /(name|project).*API key/)
      assert.ok(!JSON.stringify(refused).includes(own.id))
    }
    for (const name of ['prod-build', 'free']) {
      const missing = await api.call('GET', `/v1/sandboxes/${name}`, undefined, bearer(other.token))
      assert.equal((await errorOf(missing)).code, 'sandbox_not_found', name)
    }
    const kept = (await (await api.call('GET', path)).json()) as CreatedSandbox
    assert.deepEqual([kept.name, kept.project], [null, null])
    assert.equal((await api.call('PATCH', path, { description: 'mine' }, bearer(other.token))).status, 200)
  })

  test('makes no sandbox, lists none, and reaches no image', async () => {
    for (const [method, path] of [
      ['POST', '/v1/sandboxes'],
      ['GET', '/v1/sandboxes'],
      ['POST', '/v1/run'],
      ['GET', '/v1/images'],
      ['GET', '/v1/runtimes'],
      ['GET', '/v1/info'],
      ['GET', `/v1/sandboxes/${other.id}`],
    ] as const) {
      const response = await api.call(method, path, method === 'POST' ? {} : undefined, bearer(own.token))
      assert.equal(response.status, 403, path)
    }
  })

  test('follows a process over a WebSocket', async () => {
    const { id: pid } = await api.start(own.id, { command: 'sleep 600' })
    const route = { ...ROUTES.attachProcess, path: `/v1/sandboxes/${own.id}/processes/${pid}/attach` }
    assert.equal(await upgrade(route, own.id, { header: own.token }), 101)
    assert.equal(await upgrade(route, own.id, { protocol: own.token }), 101)
    assert.equal(await upgrade(route, own.id, { protocol: other.token }), 403)
  })

  test('does not renew itself: the key makes another one', async () => {
    const path = `/v1/sandboxes/${own.id}/token`
    const refused = await errorOf(await api.call('POST', path, { expiresIn: '30m' }, bearer(own.token)))
    assert.deepEqual([refused.status, refused.code], [403, 'forbidden'])
    const made = await api.call('POST', path, { expiresIn: '30m' })
    assert.equal(made.status, 201)
    const { token, expiresAt } = (await made.json()) as SandboxToken
    const left = Date.parse(expiresAt) - Date.now()
    assert.ok(left > 29 * 60_000 && left <= 30 * 60_000)
    assert.equal((await api.call('GET', `/v1/sandboxes/${own.id}`, undefined, bearer(token))).status, 200)
  })

  test('lives between a second and a day, an hour unless told', async () => {
    const path = `/v1/sandboxes/${own.id}/token`
    for (const expiresIn of [0, -1, 999, '25h', 'soon', null, 24 * 3_600_000 + 1])
      assert.equal((await api.call('POST', path, { expiresIn })).status, 400, String(expiresIn))
    const { expiresAt } = (await (await api.call('POST', path)).json()) as SandboxToken
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 3_600_000) < 60_000)
    assert.ok(Math.abs(Date.parse(own.tokenExpiresAt) - Date.now() - 3_600_000) < 300_000)
  })

  test('ends with its sandbox: it reads nothing of it then, and is not renewed', async () => {
    const gone = await api.createSandbox()
    const { id: pid } = await api.start(gone.id, { command: 'sleep 600' })
    const attach = `${api.url.replace('http', 'ws')}/v1/sandboxes/${gone.id}/processes/${pid}/attach`
    const socket = new WebSocket(attach, bearer(gone.token))
    await once(socket, 'open')
    const follow = await api.call(
      'GET',
      `/v1/sandboxes/${gone.id}/events?follow=true`,
      undefined,
      bearer(gone.token),
    )
    const closed = once(socket, 'close')
    await api.call('DELETE', `/v1/sandboxes/${gone.id}`, undefined, bearer(gone.token))
    await closed
    assert.match(await follow.text(), /event: stopped/)
    for (const [name, route] of ordinary) {
      const answer = await ask(route, gone.id, gone.token)
      assert.deepEqual(answer, { status: 401, code: 'unauthorized' }, name)
    }
    for (const [name, route] of sockets)
      assert.equal(await upgrade(route, gone.id, { header: gone.token }), 401, name)
    assert.equal((await api.call('GET', `/v1/sandboxes/${gone.id}`)).status, 200)
    assert.equal(
      (await errorOf(await api.call('POST', `/v1/sandboxes/${gone.id}/token`))).code,
      'invalid_state',
    )
    const missing = await api.call('POST', `/v1/sandboxes/${newId('sandbox')}/token`)
    assert.equal((await errorOf(missing)).code, 'sandbox_not_found')
  })

  test('changes no limit of its sandbox, up or down', async () => {
    const path = `/v1/sandboxes/${other.id}`
    for (const resources of [{ memory: '512Mi' }, { cpu: 1 }, { pids: 4000 }, { disk: '1Gi' }, {}]) {
      const refused = await errorOf(await api.call('PATCH', path, { resources }, bearer(other.token)))
      assert.deepEqual([refused.status, refused.code], [403, 'forbidden'])
      assert.match(`${refused.message} ${refused.hint}`, /resources.*API key/)
    }
  })

  test('is in no line of the log', async () => {
    await api.call('GET', `/v1/sandboxes/${own.id}`, undefined, bearer(`${own.token}x`))
    await api.call('GET', `/v1/sandboxes/${own.id}?token=${own.token}`)
    const signatures = [own, other].map(({ token }) => token.split('.')[2]!)
    assert.ok(api.logged.length > 0)
    for (const line of api.logged) assert.ok(!signatures.some((text) => line.includes(text)), line)
  })
})
