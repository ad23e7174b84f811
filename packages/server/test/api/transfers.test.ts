import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { isHeldOpen, startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

const HUGE = 100 * 1024 ** 3

describe('a transfer of a file', () => {
  let api: TestApi
  let made: Sandbox
  let sandbox: string
  const at = (name: string) => join(made.workdir, name)
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
    sandbox = `/v1/sandboxes/${made.id}`
    mkdirSync(at('directory'))
    writeFileSync(at('huge'), '')
    truncateSync(at('huge'), HUGE)
  })
  after(() => api[Symbol.asyncDispose]())

  it('ends when the reader goes away', async () => {
    const controller = new AbortController()
    const { signal } = controller
    const response = await api.call('GET', `${sandbox}/files?path=huge`, undefined, { signal })
    await response.body!.getReader().read()
    assert.ok(isHeldOpen(at('huge')))
    controller.abort()
    await until(() => !isHeldOpen(at('huge')))
  })

  it('ends at once for a client that has the file already', async () => {
    const { headers } = await api.call('HEAD', `${sandbox}/files?path=huge`)
    const known = { headers: { 'if-none-match': headers.get('etag')! } }
    assert.equal((await api.call('GET', `${sandbox}/files?path=huge`, undefined, known)).status, 304)
    await until(() => !isHeldOpen(at('huge')))
  })

  it('changes no byte, with others beside it and in chunks of any size', async () => {
    const sizes = [65_536, 1_000_003, 17_000, 3000]
    const contents = sizes.map(() => randomBytes(5_345_678))
    const send = async (content: Buffer, size: number, name: string) => {
      const put = { body: cut(content, size), duplex: 'half' } as never
      assert.equal((await api.call('PUT', `${sandbox}/files?path=${name}`, undefined, put)).status, 200)
      assert.ok(content.equals(readFileSync(at(name))), `${name} arrived`)
      const response = await api.call('GET', `${sandbox}/files?path=${name}`)
      assert.ok(content.equals(Buffer.from(await response.arrayBuffer())), `${name} came back`)
    }
    await Promise.all(contents.map((content, index) => send(content, sizes[index]!, `random-${index}`)))
  })

  it('leaves nothing when the writer goes away', async () => {
    const before = readdirSync(made.workdir)
    const socket = connect(api.port, '127.0.0.1')
    socket.write(
      `PUT ${sandbox}/files?path=half HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TEST_KEY}\r\nContent-Length: 100\r\n\r\nhalf`,
    )
    await until(() => readdirSync(made.workdir).length > before.length)
    assert.ok(!readdirSync(made.workdir).includes('half'), 'nobody sees it before it is whole')
    socket.destroy()
    await until(() => readdirSync(made.workdir).length === before.length)
    assert.deepEqual(readdirSync(made.workdir), before)
  })

  it('keeps what was there when the writer of another version goes away', async () => {
    writeFileSync(at('kept'), 'first')
    const names = readdirSync(made.workdir)
    const controller = new AbortController()
    const body = new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array([1, 2])) })
    const init = { body, duplex: 'half', signal: controller.signal } as never
    const writing = api.call('PUT', `${sandbox}/files?path=kept`, undefined, init)
    await until(() => readdirSync(made.workdir).length > names.length)
    controller.abort()
    await assert.rejects(writing, { name: 'AbortError' })
    await until(() => readdirSync(made.workdir).length === names.length)
    assert.equal(readFileSync(at('kept'), 'utf8'), 'first')
  })

  it('answers an error while the body is still coming, and the client sees it', async () => {
    const { status, closed } = await new Promise<{ status: number; closed: boolean }>((resolve, reject) => {
      const options = { method: 'PUT', headers: { authorization: `Bearer ${TEST_KEY}` } }
      const sent = request(`${api.url}${sandbox}/files?path=directory`, options, (response) => {
        response.resume()
        response.on('end', () =>
          resolve({ status: response.statusCode!, closed: response.headers.connection === 'close' }),
        )
        sent.destroy()
      })
      const timer = setInterval(() => sent.write(Buffer.alloc(64 * 1024)), 1)
      sent.on('error', reject).on('close', () => clearInterval(timer))
    })
    assert.deepEqual({ status, closed }, { status: 409, closed: true })
  })

  it('begins after 100 Continue, and not at all when the answer is an error', async () => {
    const put = (path: string) =>
      new Promise<{ continued: boolean; status: number }>((resolve, reject) => {
        const headers = { authorization: `Bearer ${TEST_KEY}`, expect: '100-continue', 'content-length': 5 }
        let continued = false
        const sent = request(api.url + path, { method: 'PUT', headers }, (response) => {
          response.resume()
          resolve({ continued, status: response.statusCode! })
          if (!continued) sent.destroy()
        })
        sent.on('continue', () => {
          continued = true
          sent.end('hello')
        })
        sent.on('error', reject)
        sent.flushHeaders()
      })
    assert.deepEqual(await put(`${sandbox}/files?path=asked`), { continued: true, status: 200 })
    assert.equal(readFileSync(at('asked'), 'utf8'), 'hello')
    assert.deepEqual(await put('/v1/sandboxes/x/files?path=asked'), { continued: false, status: 404 })
  })

  it('of a file that becomes shorter breaks the connection instead of looking whole', async () => {
    writeFileSync(at('shrinks'), '')
    truncateSync(at('shrinks'), HUGE)
    const reader = (await api.call('GET', `${sandbox}/files?path=shrinks`)).body!.getReader()
    await reader.read()
    truncateSync(at('shrinks'), 10)
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    })
  })

  it('of a file that grows ends where it was announced to', async () => {
    const size = 32 * 1024 * 1024
    writeFileSync(at('grows'), '')
    truncateSync(at('grows'), size)
    const response = await api.call('GET', `${sandbox}/files?path=grows`)
    truncateSync(at('grows'), 2 * size)
    assert.equal((await response.arrayBuffer()).byteLength, size)
  })
})

async function* cut(content: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size)
}
