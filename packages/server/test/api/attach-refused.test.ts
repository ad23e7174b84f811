import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { type ErrorBody, newId, type Sandbox } from '@islet/contract'
import { type ClientOptions, WebSocket } from 'ws'
import { AUTHORIZED, Client } from '../support/client.ts'
import { startTestApi, TEST_KEY, type TestApi } from '../support/server.ts'

describe('attaching', () => {
  let api: TestApi
  let sandbox: Sandbox
  let id: string
  before(async () => {
    api = await startTestApi()
    sandbox = await api.createSandbox()
    id = (await api.start(sandbox.id, { command: 'cat', stdin: true })).id
  })
  after(() => api[Symbol.asyncDispose]())

  const urlOf = (processId: string, query = '') =>
    `${api.url.replace('http', 'ws')}/v1/sandboxes/${sandbox.id}/processes/${processId}/attach${query}`

  async function refused(url: string, protocols: string[] = [], options: ClientOptions = AUTHORIZED) {
    const socket = new WebSocket(url, protocols, options)
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    const { error } = JSON.parse(Buffer.concat(chunks).toString()) as ErrorBody
    return { status: response.statusCode, code: error.code, headers: response.headers }
  }

  it('without the key is refused before the handshake', async () => {
    const none = await refused(urlOf(id), [], {})
    assert.deepEqual([none.status, none.code], [401, 'unauthorized'])
    assert.ok(none.headers['www-authenticate'])
    assert.equal((await refused(urlOf(id), [], { headers: { authorization: 'Bearer x' } })).status, 401)
    assert.equal((await refused(urlOf(id), ['islet.bearer.wrong'], {})).status, 401)
    assert.equal((await refused(urlOf(id, `?key=${TEST_KEY}`), [], {})).status, 401)
    assert.doesNotMatch(api.logged.join(''), /socket opened/)
  })

  it('from a browser is done with the key as a protocol', async () => {
    const client = await Client.open(urlOf(id), ['islet', `islet.bearer.${TEST_KEY}`], {})
    assert.equal(client.socket.protocol, 'islet')
    const alone = await Client.open(urlOf(id), [`islet.bearer.${TEST_KEY}`], {})
    assert.equal(alone.socket.protocol, `islet.bearer.${TEST_KEY}`)
    for (const { socket, closed } of [client, alone]) {
      socket.close()
      await closed
    }
    assert.doesNotMatch(api.logged.join(''), /tttttttt/)
  })

  it('meets the errors of any request when it asks for what is not there', async () => {
    const root = api.url.replace('http', 'ws')
    const cases: [string, string][] = [
      [urlOf(newId('process')), 'process_not_found'],
      [urlOf(id).replace(sandbox.id, newId('sandbox')), 'sandbox_not_found'],
      [urlOf('x'), 'process_not_found'],
      [urlOf(id, '?nope=1'), 'bad_request'],
      [`${root}/v1/nope`, 'route_not_found'],
      [`${root}/v1/sandboxes`, 'bad_request'],
    ]
    for (const [url, code] of cases) assert.equal((await refused(url)).code, code, url)
    const foreign = { headers: { ...AUTHORIZED.headers, host: 'evil.example' } }
    assert.equal((await refused(urlOf(id), [], foreign)).code, 'forbidden')
  })
})
