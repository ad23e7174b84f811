import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { Client } from '../support/client.ts'
import { startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

const HOUR_MS = 3_600_000

/** A command that waits to be let go, on its way. */
async function startWaiting(api: TestApi, sandbox: Sandbox) {
  const gate = makeGate(sandbox)
  const response = api.call('POST', `/v1/sandboxes/${sandbox.id}/exec`, { command: 'cat gate; echo late' })
  return { response, ...(await gate.reached()) }
}

/** A connection that has been answered once, and is half way through its next request. */
async function askHalf(api: TestApi, path: string) {
  const socket = connect(api.port, '127.0.0.1')
  let received = ''
  socket.setEncoding('utf8').on('data', (text) => {
    received += text
  })
  const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TEST_KEY}\r\n`
  socket.write(`${request}\r\n`)
  await until(() => received.startsWith('HTTP/1.1 200'))
  received = ''
  socket.write(request)
  // A later request on another connection has been answered, so this one has been read.
  await (await api.call('GET', '/health')).text()
  return {
    async finish() {
      socket.write('\r\n')
      await once(socket, 'close')
      return received
    },
  }
}

describe('a draining server', () => {
  it('turns new requests away and lets running ones end', async () => {
    await using api = await startTestApi({ drainTimeoutMs: HOUR_MS })
    const running = await startWaiting(api, await api.createSandbox())
    const late = await askHalf(api, '/v1/sandboxes')
    const probe = await askHalf(api, '/ready')
    const closed = api.close()
    for (const answer of [await late.finish(), await probe.finish()]) {
      assert.match(answer, /^HTTP\/1.1 503 /)
      assert.match(answer, /^connection: close\r$/im)
      assert.match(answer, /"code":"draining"/)
    }
    await running.open()
    const { stdout } = (await (await running.response).json()) as { stdout: string }
    assert.equal(stdout, 'late\n')
    await closed
  })

  it('cuts what has not ended when its time is over, and closing twice is closing once', async () => {
    await using api = await startTestApi({ drainTimeoutMs: 20 })
    const running = await startWaiting(api, await api.createSandbox())
    const failed = assert.rejects(running.response)
    await Promise.all([api.close(), api.close()])
    await failed
    await running.open()
  })

  it('sends attached clients away', async () => {
    await using api = await startTestApi({ drainTimeoutMs: HOUR_MS })
    const sandbox = await api.createSandbox()
    const { id } = await api.start(sandbox.id, { command: 'cat', stdin: true })
    const client = await Client.open(`${api.url}/v1/sandboxes/${sandbox.id}/processes/${id}/attach`)
    await api.close()
    assert.equal(await client.closed, 1001)
  })

  it('is ready until then', async () => {
    await using api = await startTestApi()
    const response = await api.call('GET', '/ready')
    assert.deepEqual([response.status, await response.json()], [200, { ready: true }])
  })

  it('is not started where something listens already', async () => {
    await using api = await startTestApi()
    await assert.rejects(startTestApi({ port: api.port }), {
      code: 'conflict',
      message: /listens on 127\.0\.0\.1/,
    })
  })
})
