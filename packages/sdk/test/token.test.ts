import assert from 'node:assert/strict'
import { after, before, beforeEach, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
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
  const islet = new Islet({ url: proxy.url, token, apiKey: TEST_KEY })
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
  const there = new Islet({ url: proxy.url, token, apiKey: TEST_KEY }).sandboxes
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
  const there = await Sandbox.connect(sandbox.id, { url: broken.url, token, apiKey: TEST_KEY })
  assert.equal(there.id, sandbox.id)
  assert.equal(broken.asked.at(-1)?.headers.authorization, `Bearer ${token}`)
})

test('a token that has expired is said to have, after one request', async (t) => {
  const connecting = Sandbox.connect(sandbox.id, { url: proxy.url, token: await expired(t) })
  await assert.rejects(connecting, (error) => {
    assert.ok(hasCode(error, 'token_expired'))
    assert.match(error.hint ?? '', /only a token cannot renew it.*sessionTokens/)
    return true
  })
  assert.equal(proxy.asked.length, 1)
})

test('a client that holds only a token does not renew it', async (t) => {
  const token = await almostOver(t)
  const there = await Sandbox.connect(sandbox.id, { url: proxy.url, token })
  await there.store.set('d', { value: 4 })
  assert.equal(renewals(), 0)
  await assert.rejects(there.getToken({ expiresIn: '1h' }), (error) => hasCode(error, 'forbidden'))
})

test('a session token is listed without its value, connects another client, and is revoked', async () => {
  const made = await sandbox.sessionTokens.create({ description: 'an app', expiresIn: '30d' })
  assert.equal(Date.parse(made.expiresAt) - Date.parse(made.createdAt), 30 * 86_400_000)
  const there = await Sandbox.connect(sandbox.id, { url: proxy.url, token: made.token })
  assert.equal((await there.exec.run('echo hi')).stdout, 'hi\n')
  const terminal = await there.pty.create()
  const { token, ...info } = made
  const [listed] = await sandbox.sessionTokens.list()
  assert.ok(listed!.lastUsedAt !== null)
  assert.deepEqual(listed, { ...info, lastUsedAt: listed!.lastUsedAt })
  assert.deepEqual(await sandbox.sessionTokens.retrieve(made.id), listed)
  const denied = [there.sessionTokens.create(), there.sessionTokens.list(), there.magicLinks.create()]
  for (const call of denied) await assert.rejects(call, (error) => hasCode(error, 'forbidden'))
  await sandbox.sessionTokens.revoke(made.id)
  await assert.rejects(
    terminal.done,
    (error) => hasCode(error, 'unauthorized') && /revoked/.test(error.message),
  )
  await assert.rejects(there.exec.run('true'), (error) => hasCode(error, 'unauthorized'))
  await sandbox.sessionTokens.revoke(made.id)
  await assert.rejects(sandbox.sessionTokens.retrieve(made.id), (error) => hasCode(error, 'token_not_found'))
  await sandbox.exec.kill(terminal.processId)
})

test('an expired session token is said to be, with what to do', async () => {
  const { token, id } = await sandbox.sessionTokens.create({ expiresIn: 1000 })
  const there = await Sandbox.connect(sandbox.id, { url: proxy.url, token })
  await assert.rejects(
    async () => {
      for (;;) {
        await there.isRunning()
        await sleep(100)
      }
    },
    (error) => hasCode(error, 'token_expired') && /only a token/.test(error.hint ?? ''),
  )
  await sandbox.sessionTokens.revoke(id)
})

test('a magic link leads to /play/, or to another path of the server', async () => {
  const link = await sandbox.magicLinks.create()
  assert.deepEqual([link.redirectUrl, new URL(link.url).origin], ['/play/', api.url])
  assert.equal((await sandbox.magicLinks.create({ redirectUrl: '/docs' })).redirectUrl, '/docs')
  for (const redirectUrl of ['https://example.com', '//example.com'])
    await assert.rejects(sandbox.magicLinks.create({ redirectUrl }), (error) => hasCode(error, 'bad_request'))
  const misspelled = { redirect: '/' } as object
  await assert.rejects(sandbox.magicLinks.create(misspelled), (error) => hasCode(error, 'bad_request'))
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
