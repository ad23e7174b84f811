// How the client handles connections, with servers that behave differently from ours.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { nodeTransport } from './node-http.ts'

test('a source that is waited for is told when its call is aborted', async () => {
  await using server = await serve((incoming) => incoming.resume())
  const abort = new AbortController()
  const told = Promise.withResolvers<void>()
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(10)),
    pull: () => server.asked.then(() => abort.abort()).then(() => new Promise(() => {})),
    cancel: () => told.resolve(),
  })
  await assert.rejects(server.ask({ method: 'POST', body, signal: abort.signal }), TypeError)
  await told.promise
})

test('the rest of a request body is not sent after the answer', async () => {
  await using server = await serve((_, outgoing) => outgoing.writeHead(413).end('too much'))
  const told = Promise.withResolvers<void>()
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
    cancel: () => told.resolve(),
  })
  const answer = await server.ask({ method: 'POST', body })
  assert.equal(answer.status, 413)
  assert.equal(await answer.text(), 'too much')
  await told.promise
})

test('a signal that was aborted before sends nothing', async () => {
  await using server = await serve((_, outgoing) => outgoing.end())
  await assert.rejects(server.ask({ method: 'GET', signal: AbortSignal.abort() }), TypeError)
})

test('a program ends although its connections are kept', async () => {
  // No connection ends by itself before the test does.
  await using server = await serve((_, outgoing) => outgoing.writeHead(204).end(), {
    keepAliveTimeout: 600_000,
  })
  const program = `
    import { Client } from ${JSON.stringify(import.meta.resolve('../client/client.ts'))}
    const client = new Client({ url: ${JSON.stringify(server.url)}, apiKey: 'key' })
    const events = () => client.streamOrNothing('listEvents', { params: { id: 'sb' } })
    console.log((await Promise.all(Array.from({ length: 20 }, events))).length)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  assert.equal(stdout, '20\n')
})

async function serve(listener: RequestListener, options = {}) {
  const server = createServer(options, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const transport = nodeTransport(url)!
  return {
    url,
    asked: once(server, 'request'),
    ask: (ask: Omit<Parameters<typeof transport>[1], 'headers'>) => transport('/', { headers: {}, ...ask }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
