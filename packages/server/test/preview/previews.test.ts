import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { LIMITS, type Preview } from '@islet/contract'
import { accepts, freePort, get, type Lab, openLab } from '../support/preview.ts'
import { errorOf, startTestApi, TEST_KEY, until } from '../support/server.ts'

describe('previews', () => {
  let lab: Lab
  let path: string
  before(async () => {
    lab = await openLab()
    path = `/v1/sandboxes/${lab.sandboxId}/previews`
  })
  after(() => lab[Symbol.asyncDispose]())

  const list = async (): Promise<Preview[]> => {
    const response = await lab.api.call('GET', path)
    return ((await response.json()) as { previews: Preview[] }).previews
  }
  const failure = async (body: unknown) => errorOf(await lab.api.call('POST', path, body))

  it('are made once per port, listed and deleted', async () => {
    const made = await lab.show((_incoming, outgoing) => void outgoing.end('page'))
    const again = await lab.preview({ port: made.port })
    assert.deepEqual([again.url, again.createdAt], [made.url, made.createdAt])
    assert.match(made.url, /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.equal((await get(made.url)).text, 'page')
    assert.ok((await list()).some(({ url, port }) => url === made.url && port === made.port))
    assert.equal((await lab.api.call('DELETE', `${path}/${made.port}`)).status, 204)
    assert.equal(await accepts(made.url), false)
    assert.ok(!(await list()).some(({ port }) => port === made.port))
    for (const port of [made.port, 'x', '0', '65536'])
      assert.equal((await errorOf(await lab.api.call('DELETE', `${path}/${port}`))).code, 'preview_not_found')
  })

  it('asked for at once are one', async () => {
    const port = await freePort()
    const made = await Promise.all(Array.from({ length: 10 }, () => lab.preview({ port, keep: true })))
    assert.equal(new Set(made.map(({ url }) => url)).size, 1)
  })

  it('refuse what cannot be', async () => {
    for (const body of [
      {},
      { port: 0 },
      { port: 65_536 },
      { port: 1.5 },
      { port: 80, domain: 'no_domain' },
      { port: 80, domain: 'single' },
      { port: 80, authConfig: { type: 'password' } },
      { port: 80, authConfig: { type: 'token', token: 'short' } },
      { port: 80, authConfig: { type: 'token', token: 'with a space in it' } },
      { port: 80, other: 1 },
    ])
      assert.equal((await failure(body)).code, 'bad_request', JSON.stringify(body))
    assert.equal((await failure({ port: 80, domain: '10.0.0.1' })).code, 'conflict')
    const unknown = await lab.api.call('POST', `/v1/sandboxes/sbx-${'0'.repeat(20)}/previews`, { port: 80 })
    assert.equal((await errorOf(unknown)).code, 'sandbox_not_found')
  })

  it('have a domain that no other has, and that only the admin key may give', async () => {
    const made = await lab.preview({ port: 7001, domain: 'One.Example.com' })
    assert.equal(made.domain, 'one.example.com')
    assert.equal(made.url, `http://one.example.com:${lab.api.port}`)
    assert.equal((await failure({ port: 7002, domain: 'one.example.com' })).code, 'conflict')
    const tokenAnswer = await lab.api.call('POST', `/v1/sandboxes/${lab.sandboxId}/token`, {})
    const { token } = (await tokenAnswer.json()) as { token: string }
    const Authorization = `Bearer ${token}`
    const asked = await lab.api.call(
      'POST',
      path,
      { port: 7002, domain: 'two.example.com' },
      { headers: { Authorization } },
    )
    assert.equal((await errorOf(asked)).code, 'forbidden')
    assert.equal((await lab.preview({ port: 7001 })).domain, undefined)
    assert.equal((await lab.preview({ port: 7002, domain: 'one.example.com' })).domain, 'one.example.com')
  })

  it('end with their sandbox, and of one that is gone none is made', async () => {
    const { id } = await lab.api.createSandbox()
    const response = await lab.api.call('POST', `/v1/sandboxes/${id}/previews`, {
      port: 8123,
      domain: 'gone.example.com',
    })
    const { port } = (await response.json()) as Preview
    assert.equal(port, 8123)
    const open = (await (
      await lab.api.call('POST', `/v1/sandboxes/${id}/previews`, { port: 8124 })
    ).json()) as Preview
    assert.equal(await accepts(open.url), true)
    await lab.api.call('DELETE', `/v1/sandboxes/${id}`)
    assert.equal(await accepts(open.url), false)
    const refused = await errorOf(await lab.api.call('POST', `/v1/sandboxes/${id}/previews`, { port: 8123 }))
    assert.equal(refused.code, 'invalid_state')
    assert.equal((await lab.preview({ port: 8123, domain: 'gone.example.com' })).domain, 'gone.example.com')
  })

  it('are bounded in number', async () => {
    const { id } = await lab.api.createSandbox()
    const make = (port: number) => lab.api.call('POST', `/v1/sandboxes/${id}/previews`, { port })
    for (let port = 1; port <= LIMITS.previews; port++) assert.equal((await make(port)).status, 201)
    assert.equal((await errorOf(await make(LIMITS.previews + 1))).code, 'limit_exceeded')
    assert.equal((await make(1)).status, 201)
  })

  it('end when the server does, also during a download', async () => {
    await using own = await openLab({ drainTimeoutMs: 200 })
    const shown = await own.show((_incoming, outgoing) => void outgoing.write('for ever'))
    const response = await fetch(shown.url)
    const reader = response.body!.getReader()
    await reader.read()
    const ended = assert.rejects(reader.read())
    await own[Symbol.asyncDispose]()
    await ended
    assert.equal(await accepts(shown.url), false)
  })

  it('on all addresses have the name by which the server was asked', async () => {
    await using api = await startTestApi({ host: '0.0.0.0' })
    const { id } = await api.createSandbox()
    const response = await fetch(`http://localhost:${api.port}/v1/sandboxes/${id}/previews`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${TEST_KEY}`, 'Content-Type': 'application/json' },
      body: '{"port":80}',
    })
    const { url } = (await response.json()) as Preview
    assert.match(url, /^http:\/\/localhost:\d+$/)
    await until(() => accepts(url))
  })
})
