import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { after, before, describe, it } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { WebSocket, WebSocketServer } from 'ws'
import { get, type Lab, openLab } from '../support/preview.ts'
import { parentOf, TEST_KEY, until } from '../support/server.ts'

describe('previews below a domain', () => {
  let lab: Lab
  before(async () => {
    lab = await openLab({ previewDomain: 'preview.example.com' })
  })
  after(() => lab[Symbol.asyncDispose]())

  const at = (host: string, path = '/', headers: Record<string, string> = {}) =>
    get(lab.api.url + path, { headers: { Host: host, ...headers } })

  it('are reached on the main port by their name', async () => {
    const shown = await lab.show((incoming, outgoing) => {
      outgoing.end(`${incoming.headers.host} ${incoming.headers['x-forwarded-proto']} ${incoming.url}`)
    })
    const name = `${shown.port}-${lab.sandboxId}.preview.example.com`
    assert.equal(shown.url, `https://${name}`)
    assert.equal((await at(name, '/v1/sandboxes')).text, `${name} https /v1/sandboxes`)
    assert.equal((await at(`${name.toUpperCase()}.:8443`)).status, 200)
    const api = await at('localhost', '/v1/sandboxes', { Authorization: `Bearer ${TEST_KEY}` })
    assert.equal(api.status, 200)
    assert.ok(JSON.parse(api.text).sandboxes)
  })

  it('must have been made: any other name below the domain leads nowhere', async () => {
    for (const label of [`9-${lab.sandboxId}`, '80-sbx-x', 'x', 'a.b', `0-${lab.sandboxId}`]) {
      const { status, text } = await at(`${label}.preview.example.com`)
      assert.equal(status, 404)
      assert.equal(JSON.parse(text).error.code, 'preview_not_found')
    }
    assert.match(
      (await at('x.preview.example.com', '/', { Accept: 'text/html' })).text,
      /no preview at this address/,
    )
    assert.equal((await at('preview.example.com')).status, 403)
  })

  it('take tokens with a cookie for https alone, and WebSockets', async () => {
    const token = 'a-token-of-good-length'
    const shown = await lab.show((_incoming, outgoing) => void outgoing.end(), {
      authConfig: { type: 'token', token },
    })
    new WebSocketServer({ server: shown.app as Server }).on('connection', (socket) => socket.send('hello'))
    const host = new URL(shown.url).host
    const opened = await at(host, `/?islet_token=${token}`, { Accept: 'text/html' })
    assert.match(opened.message.headers['set-cookie']![0]!, /; HttpOnly; SameSite=Lax; Secure$/)
    const refused = new WebSocket(lab.api.url.replace('http', 'ws'), { headers: { Host: host } })
    const [error] = await once(refused, 'error')
    assert.match(String(error), /401/)
    const socket = new WebSocket(`${lab.api.url.replace('http', 'ws')}/?islet_token=${token}`, {
      headers: { Host: host },
    })
    assert.equal(String((await once(socket, 'message'))[0]), 'hello')
    socket.terminate()
  })

  it('may have a name of their own instead', async () => {
    const shown = await lab.show((_incoming, outgoing) => void outgoing.end('mine'), {
      domain: 'app.example.org',
    })
    assert.equal(shown.url, 'https://app.example.org')
    assert.equal((await at('app.example.org', '/v1')).text, 'mine')
    const taken = await lab.api.call('POST', `/v1/sandboxes/${lab.sandboxId}/previews`, {
      port: 1,
      domain: 'x.preview.example.com',
    })
    assert.equal(taken.status, 409)
    await lab.api.call('DELETE', `/v1/sandboxes/${lab.sandboxId}/previews/${shown.port}`)
    assert.equal((await at('app.example.org')).status, 403)
  })

  it('say that the sandbox is gone or has failed', async () => {
    const { id } = await lab.api.createSandbox()
    await lab.api.call('POST', `/v1/sandboxes/${id}/previews`, { port: 80 })
    await lab.api.call('DELETE', `/v1/sandboxes/${id}`)
    const gone = await at(`80-${id}.preview.example.com`)
    assert.deepEqual([gone.status, JSON.parse(gone.text).error.code], [410, 'invalid_state'])

    const failing = await lab.api.createSandbox()
    await lab.api.call('POST', `/v1/sandboxes/${failing.id}/previews`, { port: 80 })
    const { pid } = await lab.api.start(failing.id, { command: ['sleep', '100'] })
    for (const victim of [parentOf(pid!), pid!]) process.kill(victim, 'SIGKILL')
    const statusOf = async () =>
      (await lab.api.call('GET', `/v1/sandboxes/${failing.id}`)).json() as Promise<Sandbox>
    await until(async () => (await statusOf()).status === 'failed')
    const failed = await at(`80-${failing.id}.preview.example.com`)
    assert.deepEqual([failed.status, JSON.parse(failed.text).error.message], [503, 'This sandbox is failed.'])
  })
})
