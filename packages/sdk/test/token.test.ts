import assert from 'node:assert/strict'
import { after, before, beforeEach, type TestContext, test } from 'node:test'
import { IsletError } from '@islet/contract/client'
import { Tokens } from '../../server/src/tokens.ts'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Islet, Sandbox } from '../src/index.ts'
import { type Asked, startProxy, type TestProxy } from './proxy.ts'

let api: TestApi
let tokens: Tokens
let proxy: TestProxy
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  tokens = await Tokens.open(api.dataDir)
  sandbox = await Sandbox.create({ url: api.url, apiKey: TEST_KEY })
  proxy = await startProxy(api.url)
})
after(async () => {
  await proxy[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
})
beforeEach(() => void proxy.asked.splice(0))

const isRenewal = ({ path }: Asked) => path.endsWith('/token')
const renewals = () => proxy.asked.filter(isRenewal).length
const issue = async (lifetimeMs: number) => (await tokens.issue(sandbox.id, { lifetimeMs })).token
/** As it was given out some time ago. */
const issuedAgo = async (t: TestContext, agoMs: number, lifetimeMs: number) => {
  const now = Date.now()
  t.mock.timers.enable({ apis: ['Date'], now: now - agoMs })
  const token = await issue(lifetimeMs)
  t.mock.timers.reset()
  return token
}
const almostOver = (t: TestContext) => issuedAgo(t, 600_000, 630_000)
const expired = (t: TestContext) => issuedAgo(t, 3_600_000, 1_800_000)

test('a token is enough to work with its sandbox, and for nothing else', async () => {
  const { token } = await sandbox.getToken()
  const there = await Sandbox.connect(sandbox.id, { url: proxy.url, token })
  await there.store.set('a', { value: 1 })
  assert.equal((await there.store.get('a')).value, 1)
  assert.equal((await there.exec.run('echo hi')).stdout, 'hi\n')
  const session = await there.exec.start('cat', {})
  session.closeStdin()
  assert.equal(await session.done, 0)
  await assert.rejects(new Islet({ url: api.url, token }).sandboxes.list(), (error) =>
    hasCode(error, 'forbidden'),
  )
  await assert.rejects(Sandbox.create({ url: api.url, token }), (error) => hasCode(error, 'forbidden'))
  assert.equal(renewals(), 0)
  for (const { path, query } of proxy.asked) assert.ok(!`${path}${query}`.includes(token.slice(-20)))
})

test('a key that the machine has is not used beside a token', async () => {
  const { token } = await (await Sandbox.create({ url: api.url, apiKey: TEST_KEY })).getToken()
  process.env.ISLET_API_KEY = TEST_KEY
  try {
    const connecting = Sandbox.connect(sandbox.id, { url: api.url, token })
    await assert.rejects(connecting, (error) => hasCode(error, 'forbidden'))
  } finally {
    delete process.env.ISLET_API_KEY
  }
})

test('a token that is about to expire is renewed once, however many calls wait, for as long as it lived', async (t) => {
  const token = await almostOver(t)
  const islet = new Islet({ url: proxy.url, token })
  await Promise.all(Array.from({ length: 10 }, () => islet.sandboxes.get(sandbox.id)))
  assert.equal(renewals(), 1)
  const shown = new Set(
    proxy.asked.filter((asked) => !isRenewal(asked)).map(({ headers }) => headers.authorization),
  )
  assert.equal(shown.size, 1)
  assert.ok(!shown.has(`Bearer ${token}`))
  const there = await islet.sandboxes.connect(sandbox.id)
  const { expiresAt } = await there.getToken()
  assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 630_000) < 60_000)
  assert.equal(renewals(), 1)
})

test('a WebSocket is opened with a fresh token', async (t) => {
  const process = await sandbox.exec.spawn('sleep 600')
  const token = await almostOver(t)
  const there = new Islet({ url: proxy.url, token }).sandboxes
  const connected = await there.connect(sandbox.id)
  const session = await connected.exec.attach(process.id)
  session.close()
  const { headers } = proxy.asked.find(({ path }) => path.endsWith('/attach'))!
  assert.ok(!String(headers['sec-websocket-protocol']).includes(token))
  assert.equal(renewals(), 1)
  await sandbox.exec.kill(process.id)
})

test('a renewal that fails leaves the token that is still good', async (t) => {
  const token = await almostOver(t)
  await using broken = await startProxy(api.url, (asked) =>
    isRenewal(asked) ? { cut: 'request' } : undefined,
  )
  const there = await Sandbox.connect(sandbox.id, { url: broken.url, token })
  assert.equal(there.id, sandbox.id)
  assert.equal(broken.asked.at(-1)?.headers.authorization, `Bearer ${token}`)
})

test('a token that has expired is said to have, after one request', async (t) => {
  const connecting = Sandbox.connect(sandbox.id, { url: proxy.url, token: await expired(t) })
  await assert.rejects(connecting, (error) => {
    assert.ok(hasCode(error, 'token_expired'))
    assert.match(error.hint ?? '', /\/token/)
    return true
  })
  assert.equal(proxy.asked.length, 1)
})

test('with a key beside it, a token that has expired is renewed', async (t) => {
  const token = await expired(t)
  const there = await Sandbox.connect(sandbox.id, { url: proxy.url, token, apiKey: TEST_KEY })
  await there.store.set('b', { value: 2 })
  assert.equal(renewals(), 1)
  const shown = proxy.asked.filter((asked) => !isRenewal(asked)).map(({ headers }) => headers.authorization)
  assert.ok(shown.every((text) => text !== `Bearer ${TEST_KEY}`))
})

test('a token that only the server knows to have expired is replaced once, and the call made again', async () => {
  const given = [await issue(3_600_000), await issue(1_800_000)]
  const refused = `Bearer ${given[0]}`
  const body = JSON.stringify(new IsletError('token_expired').toBody())
  await using strict = await startProxy(api.url, ({ headers }) =>
    headers.authorization === refused ? { status: 401, body } : undefined,
  )
  let asked = 0
  const token = async () => given[Math.min(asked++, 1)]!
  const there = await Sandbox.connect(sandbox.id, { url: strict.url, token })
  assert.equal(asked, 2)
  await there.store.set('c', { value: 3 })
  assert.equal(asked, 2)
})

test('a WebSocket refused for its token is opened again with another one', async () => {
  const process = await sandbox.exec.spawn('true')
  const given = [await issue(3_600_000), await issue(1_800_000)]
  const body = JSON.stringify(new IsletError('token_expired').toBody())
  let isOver = false
  await using strict = await startProxy(api.url, ({ headers }) =>
    isOver && `${headers.authorization} ${headers['sec-websocket-protocol']}`.includes(given[0]!)
      ? { status: 401, body }
      : undefined,
  )
  const token = () => (isOver ? given[1]! : given[0]!)
  const there = await Sandbox.connect(sandbox.id, { url: strict.url, token })
  isOver = true
  assert.equal(await (await there.exec.attach(process.id)).done, 0)
  assert.equal(strict.asked.filter(({ path }) => path.endsWith('/attach')).length, 2)
})

test('a function that always gives a refused token ends in the error', async (t) => {
  const given = await expired(t)
  let asked = 0
  const token = async () => {
    asked++
    return given
  }
  await assert.rejects(Sandbox.connect(sandbox.id, { url: proxy.url, token }), (error) =>
    hasCode(error, 'token_expired'),
  )
  assert.ok(asked <= 3)
  assert.ok(proxy.asked.length <= 2)
})

test('a stream that was begun is not sent a second time', async () => {
  const body = JSON.stringify(new IsletError('token_expired').toBody())
  await using strict = await startProxy(api.url, (_, count) =>
    count === 2 ? { status: 401, body } : undefined,
  )
  const there = await Sandbox.connect(sandbox.id, { url: strict.url, token: () => issue(3_600_000) })
  const once = async function* () {
    yield 'hello'
  }
  await assert.rejects(there.files.write('once', once()), (error) => hasCode(error, 'token_expired'))
  await there.files.write('once', once())
  assert.equal(await there.files.read('once'), 'hello')
})

test('getToken gives what create answered with, and another one when that is about to end', async (t) => {
  const made = await Sandbox.create({ url: proxy.url, apiKey: TEST_KEY })
  const first = await made.getToken()
  assert.equal((await made.getToken()).token, first.token)
  assert.equal(renewals(), 0)
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse(first.expiresAt) - 60_000 })
  const second = await made.getToken()
  assert.notEqual(second.token, first.token)
  assert.equal(renewals(), 1)
  assert.equal((await made.getToken({ expiresIn: '30m' })).token === second.token, false)
  assert.ok(!JSON.stringify(await made.getInfo()).includes('eyJ'))
})

test('a token is in no error', async (t) => {
  const token = await expired(t)
  const secret = token.split('.')[2]!
  const failing = [
    () => Sandbox.connect(sandbox.id, { url: proxy.url, token }),
    () => Sandbox.connect(sandbox.id, { url: 'http://127.0.0.1:1', token, retries: 0 }),
    () => Sandbox.connect(sandbox.id, { url: proxy.url, token: `${token}\n` }),
  ]
  for (const fail of failing) {
    const error = await fail().then(
      () => assert.fail('it worked'),
      (thrown: Error) => thrown,
    )
    const { inspect } = await import('node:util')
    assert.ok(!inspect(error, { depth: 10 }).includes(secret), error.message)
  }
})
