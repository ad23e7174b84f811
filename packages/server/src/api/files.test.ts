import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { type ErrorBody, fileEntry, fileList } from '@islet/contract'
import { startTestApi, TEST_KEY, type TestApi, until } from './testing.ts'

describe('files', () => {
  let api: TestApi
  let sandbox: string
  before(async () => {
    api = await startTestApi()
    sandbox = `/v1/sandboxes/${(await api.control.create({})).id}`
    api.files.content.set('/ten', Buffer.from('0123456789'))
    api.files.content.set('/empty', Buffer.alloc(0))
  })
  after(() => api[Symbol.asyncDispose]())

  const read = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    api.call(method, `${sandbox}/files?path=${encodeURIComponent(path)}`, undefined, { headers })
  const codeOf = async (response: Response) => ((await response.json()) as ErrorBody).error.code

  it('are read with what a client needs to know about them', async () => {
    const response = await read('/ten')
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-length'), '10')
    assert.equal(response.headers.get('content-type'), 'application/octet-stream')
    assert.equal(response.headers.get('last-modified'), 'Fri, 02 Jan 2026 03:04:05 GMT')
    assert.match(response.headers.get('etag') ?? '', /^W\/"a-[0-9a-f]+"$/)
    assert.equal(response.headers.get('accept-ranges'), 'bytes')
    assert.equal(await response.text(), '0123456789')
    assert.equal(await (await read('/empty')).text(), '')
  })

  it('are described by HEAD without being opened', async () => {
    const before = api.files.calls.length
    const response = await read('/ten', { range: 'bytes=0-1' }, 'HEAD')
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-length'), '10')
    assert.ok(response.headers.get('etag'))
    assert.equal(api.files.calls.length, before)
    assert.equal((await read('/none', {}, 'HEAD')).status, 404)
  })

  it('are read in part by a range', async () => {
    const cases: [string, string, string][] = [
      ['bytes=0-0', '0', 'bytes 0-0/10'],
      ['bytes=3-5', '345', 'bytes 3-5/10'],
      ['bytes=7-', '789', 'bytes 7-9/10'],
      ['bytes=7-99999999999999999999', '789', 'bytes 7-9/10'],
      ['bytes=-2', '89', 'bytes 8-9/10'],
      ['bytes=-99', '0123456789', 'bytes 0-9/10'],
    ]
    for (const [range, text, contentRange] of cases) {
      const response = await read('/ten', { range })
      assert.equal(response.status, 206, range)
      assert.equal(response.headers.get('content-range'), contentRange)
      assert.equal(await response.text(), text)
    }
  })

  it('are read whole when the range is none we know, or may be stale', async () => {
    for (const range of [
      'bytes=1-2,4-5',
      'lines=1-2',
      'bytes=',
      'bytes=-',
      'bytes=5-1',
      'bytes=a-b',
      '1-2',
    ]) {
      const response = await read('/ten', { range })
      assert.equal(response.status, 200, range)
      assert.equal((await response.text()).length, 10)
    }
    assert.equal((await read('/ten', { range: 'bytes=0-1', 'if-range': '"x"' })).status, 200)
  })

  it('answer a range outside of them with their size', async () => {
    for (const [path, range] of [
      ['/ten', 'bytes=10-'],
      ['/ten', 'bytes=-0'],
      ['/empty', 'bytes=0-'],
    ] as const) {
      const response = await read(path, { range })
      assert.equal(response.status, 416, range)
      assert.equal(response.headers.get('content-range'), path === '/ten' ? 'bytes */10' : 'bytes */0')
      assert.equal(await codeOf(response), 'range_not_satisfiable')
    }
  })

  it('are not sent again to who has them', async () => {
    const etag = (await read('/ten')).headers.get('etag')!
    for (const method of ['GET', 'HEAD']) {
      const response = await read('/ten', { 'if-none-match': `"x", ${etag}` }, method)
      assert.equal(response.status, 304)
      assert.equal(await response.text(), '')
    }
    assert.equal((await read('/ten', { 'if-none-match': '"x"' })).status, 200)
    assert.equal(api.files.openReads, 0)
  })

  it('are written as they are sent, with the options of the query', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 0])
    const path = encodeURIComponent('/a b/ü&=?#')
    const response = await api.call(
      'PUT',
      `${sandbox}/files?path=${path}&mode=0755&owner=root&exclusive=1`,
      bytes,
    )
    assert.equal(response.status, 200)
    fileEntry.parse(await response.json())
    assert.deepEqual(api.files.content.get('/a b/ü&=?#'), bytes)
    assert.deepEqual(api.files.calls.at(-1), {
      write: '/a b/ü&=?#',
      mode: 0o755,
      owner: 'root',
      parents: true,
      exclusive: true,
    })
    assert.equal((await api.call('PUT', `${sandbox}/files?path=/e`, new Uint8Array())).status, 200)
    assert.equal(api.files.content.get('/e')?.length, 0)
  })

  it('are listed, described, made, moved, copied and removed', async () => {
    fileList.parse(await (await api.call('GET', `${sandbox}/files/list?path=/x&depth=3`)).json())
    assert.deepEqual(api.files.calls.at(-1), { list: '/x', depth: 3, limit: 10_000 })
    fileEntry.parse(await (await api.call('GET', `${sandbox}/files/stat?path=/ten&follow=false`)).json())
    assert.equal((await api.call('POST', `${sandbox}/files/mkdir`, { path: '/d', mode: '0700' })).status, 201)
    assert.deepEqual(api.files.calls.at(-1), { mkdir: '/d', parents: true, mode: 0o700 })
    assert.equal((await api.call('POST', `${sandbox}/files/copy`, { from: '/ten', to: '/c' })).status, 200)
    assert.equal((await api.call('POST', `${sandbox}/files/move`, { from: '/c', to: '/m' })).status, 200)
    const removed = await api.call('DELETE', `${sandbox}/files?path=/m&recursive=true`)
    assert.equal(removed.status, 204)
    assert.equal(await removed.text(), '')
    assert.deepEqual(api.files.calls.at(-1), { remove: '/m', recursive: true })
  })

  it('of any size go through without being held', async () => {
    const size = 256 * 1024 * 1024
    const response = await read(`/zero/${size}`)
    let received = 0
    for await (const chunk of response.body!) received += chunk.length
    assert.equal(received, size)

    const before = process.memoryUsage.rss()
    api.files.nullBytes = 0
    const chunk = new Uint8Array(1024 * 1024)
    const body = new ReadableStream({
      pull(controller) {
        received -= chunk.length
        controller.enqueue(chunk)
        if (received === 0) controller.close()
      },
    })
    const written = await api.call('PUT', `${sandbox}/files?path=/null`, undefined, {
      body,
      duplex: 'half',
    } as never)
    assert.equal(written.status, 200)
    assert.equal(api.files.nullBytes, size)
    assert.ok(process.memoryUsage.rss() - before < size / 2)
  })

  it('are not read further when the reader goes away', async () => {
    const controller = new AbortController()
    const response = await api.call('GET', `${sandbox}/files?path=/zero/100000000000`, undefined, {
      signal: controller.signal,
    })
    await response.body!.getReader().read()
    assert.equal(api.files.openReads, 1)
    controller.abort()
    await until(() => api.files.openReads === 0)
  })

  it('are not written when the writer goes away', async () => {
    const before = api.files.abortedWrites
    const socket = connect(api.port, '127.0.0.1')
    socket.write(
      `PUT ${sandbox}/files?path=/half HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TEST_KEY}\r\nContent-Length: 100\r\n\r\nhalf`,
    )
    await until(() => (api.files.calls.at(-1) as { write?: string }).write === '/half')
    socket.destroy()
    await until(() => api.files.abortedWrites === before + 1)
    assert.equal(api.files.content.has('/half'), false)
  })

  it('answer an error while the body is still coming, and the client sees it', async () => {
    const { status, closed } = await new Promise<{ status: number; closed: boolean }>((resolve, reject) => {
      const options = { method: 'PUT', headers: { authorization: `Bearer ${TEST_KEY}` } }
      const sent = request(`${api.url}${sandbox}/files?path=/directory`, options, (response) => {
        response.resume()
        response.on('end', () =>
          resolve({ status: response.statusCode!, closed: response.headers.connection === 'close' }),
        )
        clearInterval(timer)
        sent.destroy()
      })
      const timer = setInterval(() => sent.write(Buffer.alloc(64 * 1024)), 1)
      sent.on('error', reject)
    })
    assert.deepEqual({ status, closed }, { status: 409, closed: true })
  })

  it('are sent after 100 Continue, and not at all when the answer is an error', async () => {
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
    assert.deepEqual(await put(`${sandbox}/files?path=/asked`), { continued: true, status: 200 })
    assert.equal(api.files.content.get('/asked')?.toString(), 'hello')
    assert.deepEqual(await put('/v1/sandboxes/x/files?path=/asked'), { continued: false, status: 404 })
  })

  it('that end early break the connection instead of looking whole', async () => {
    const read = api.files.read.bind(api.files)
    api.files.read = async (...args) => ({ ...(await read(...args)), length: 11 })
    await assert.rejects(
      async () => (await (await api.call('GET', `${sandbox}/files?path=/ten`)).arrayBuffer()).byteLength,
    )
    api.files.read = read
  })
})
