import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { ERRORS, fileEntry, fileList, type Sandbox } from '@islet/contract'
import { errorOf, isHeldOpen, startTestApi, type TestApi, until } from '../support/server.ts'

const GIBIBYTE = 1024 ** 3

describe('files', () => {
  let api: TestApi
  let made: Sandbox
  let sandbox: string
  const at = (name: string) => join(made.workdir, name)
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
    sandbox = `/v1/sandboxes/${made.id}`
    writeFileSync(at('ten'), '0123456789')
    const modified = new Date('2026-01-02T03:04:05.000Z')
    utimesSync(at('ten'), modified, modified)
    writeFileSync(at('empty'), '')
    mkdirSync(at('directory'))
    execFileSync('mkfifo', [at('fifo')])
  })
  after(() => api[Symbol.asyncDispose]())

  /** A file of zeros that takes no space. */
  const sparse = (name: string, bytes: number) => {
    writeFileSync(at(name), '')
    truncateSync(at(name), bytes)
  }
  const read = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    api.call(method, `${sandbox}/files?path=${encodeURIComponent(path)}`, undefined, { headers })

  it('are read with what a client needs to know about them', async () => {
    const response = await read('ten')
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-length'), '10')
    assert.equal(response.headers.get('content-type'), 'application/octet-stream')
    assert.equal(response.headers.get('last-modified'), 'Fri, 02 Jan 2026 03:04:05 GMT')
    assert.match(response.headers.get('etag') ?? '', /^W\/"a-[0-9a-f]+"$/)
    assert.equal(response.headers.get('accept-ranges'), 'bytes')
    assert.equal(await response.text(), '0123456789')
    assert.equal(await (await read('empty')).text(), '')
  })

  it('are described by HEAD', async () => {
    const response = await read('ten', { range: 'bytes=0-1' }, 'HEAD')
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-length'), '10')
    assert.ok(response.headers.get('etag'))
    assert.equal((await read('none', {}, 'HEAD')).status, 404)
    assert.equal((await read('directory', {}, 'HEAD')).status, 409)
  })

  it('are files: neither directories nor what waits for a writer', async () => {
    assert.equal((await errorOf(await read('directory'))).code, 'is_a_directory')
    assert.equal((await errorOf(await read('fifo'))).code, 'not_a_file')
    assert.equal((await errorOf(await read('none'))).code, 'file_not_found')
    assert.equal((await errorOf(await read('ten/x'))).code, 'not_a_directory')
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
      const response = await read('ten', { range })
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
      const response = await read('ten', { range })
      assert.equal(response.status, 200, range)
      assert.equal((await response.text()).length, 10)
    }
    assert.equal((await read('ten', { range: 'bytes=0-1', 'if-range': '"x"' })).status, 200)
  })

  it('answer a range outside of them with their size', async () => {
    for (const [path, range] of [
      ['ten', 'bytes=10-'],
      ['ten', 'bytes=-0'],
      ['empty', 'bytes=0-'],
      ['empty', 'bytes=0-9'],
      ['empty', 'bytes=-5'],
    ] as const) {
      const response = await read(path, { range })
      assert.equal(response.status, 416, `${path} ${range}`)
      assert.equal(response.headers.get('content-range'), path === 'ten' ? 'bytes */10' : 'bytes */0')
      assert.equal((await errorOf(response)).code, 'range_not_satisfiable')
    }
  })

  it('are not sent again to a client that has them', async () => {
    const etag = (await read('ten')).headers.get('etag')!
    for (const method of ['GET', 'HEAD']) {
      const response = await read('ten', { 'if-none-match': `"x", ${etag}` }, method)
      assert.equal(response.status, 304)
      assert.equal(await response.text(), '')
    }
    assert.equal((await read('ten', { 'if-none-match': '"x"' })).status, 200)
    await until(() => !isHeldOpen(at('ten')))
  })

  it('are written as they are sent, with the options of the query', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 0])
    const path = encodeURIComponent('a b/ü&=?#')
    const put = `${sandbox}/files?path=${path}&mode=0751&owner=33:44&exclusive=1`
    const response = await api.call('PUT', put, bytes)
    assert.equal(response.status, 200)
    assert.equal(fileEntry.parse(await response.json()).path, at('a b/ü&=?#'))
    assert.deepEqual(readFileSync(at('a b/ü&=?#')), bytes)
    const { mode, uid, gid } = statSync(at('a b/ü&=?#'))
    assert.deepEqual([mode & 0o7777, uid, gid], [0o751, 33, 44])
    assert.equal((await errorOf(await api.call('PUT', put, bytes))).code, 'file_exists')
    assert.equal((await api.call('PUT', `${sandbox}/files?path=e`, new Uint8Array())).status, 200)
    assert.equal(statSync(at('e')).size, 0)
  })

  it('are listed, described, made, moved, copied and removed', async () => {
    const post = (verb: string, body: object) => api.call('POST', `${sandbox}/files/${verb}`, body)
    const made = await post('mkdir', { path: 'd/e', mode: '0700' })
    assert.equal(made.status, 201)
    assert.equal(fileEntry.parse(await made.json()).mode, '0700')
    assert.equal((await post('copy', { from: 'ten', to: 'd/c' })).status, 200)
    assert.equal((await post('move', { from: 'd/c', to: 'd/e/m' })).status, 200)
    const listed = await api.call('GET', `${sandbox}/files/list?path=d&depth=3`)
    const names = fileList.parse(await listed.json()).entries.map(({ path }) => path)
    assert.deepEqual(names, [at('d/e'), at('d/e/m')])
    const stat = await api.call('GET', `${sandbox}/files/stat?path=d/e/m&follow=false`)
    assert.equal(fileEntry.parse(await stat.json()).sizeBytes, 10)
    assert.equal((await api.call('DELETE', `${sandbox}/files?path=d`)).status, 409)
    const removed = await api.call('DELETE', `${sandbox}/files?path=d&recursive=true`)
    assert.deepEqual([removed.status, await removed.text()], [204, ''])
    assert.ok(!existsSync(at('d')))
  })

  it('of any size go through without being held', async () => {
    const size = GIBIBYTE / 4
    sparse('large', size)
    let received = 0
    for await (const chunk of (await read('large')).body!) received += chunk.length
    assert.equal(received, size)

    const before = process.memoryUsage.rss()
    const chunk = new Uint8Array(1024 * 1024)
    const body = new ReadableStream({
      pull(controller) {
        received -= chunk.length
        controller.enqueue(chunk)
        if (received === 0) controller.close()
      },
    })
    const init = { body, duplex: 'half' } as never
    const written = await api.call('PUT', `${sandbox}/files?path=large`, undefined, init)
    assert.equal(fileEntry.parse(await written.json()).sizeBytes, size)
    assert.ok(process.memoryUsage.rss() - before < size / 2)
    await api.call('DELETE', `${sandbox}/files?path=large`)
  })

  it('answers with an error when the first byte of a file cannot be read', async () => {
    const response = await api.call('GET', `${sandbox}/files?path=/proc/self/mem`)
    const { code } = await errorOf(response)
    assert.notEqual(code, 'internal')
    assert.ok(Object.hasOwn(ERRORS, code), code)
  })
})
