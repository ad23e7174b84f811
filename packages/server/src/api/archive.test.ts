import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { ErrorBody } from '@islet/contract'
import { startTestApi, type TestApi } from './testing.ts'

describe('archives', () => {
  let api: TestApi
  let archive: string
  const tar = randomBytes(300_000)
  before(async () => {
    api = await startTestApi()
    archive = `/v1/sandboxes/${(await api.control.create({})).id}/files/archive`
    api.files.content.set('/tree', tar)
  })
  after(() => api[Symbol.asyncDispose]())

  it('come compressed unless asked otherwise', async () => {
    const packed = await api.call('GET', `${archive}?path=/tree`)
    assert.equal(packed.headers.get('content-type'), 'application/gzip')
    assert.equal(packed.headers.get('content-disposition'), 'attachment; filename="tree.tar.gz"')
    assert.deepEqual(gunzipSync(Buffer.from(await packed.arrayBuffer())), tar)
    const plain = await api.call('GET', `${archive}?path=/tree&gzip=false`)
    assert.equal(plain.headers.get('content-type'), 'application/x-tar')
    assert.deepEqual(Buffer.from(await plain.arrayBuffer()), tar)
  })

  it('are described by HEAD', async () => {
    const response = await api.call('HEAD', `${archive}?path=/tree`)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/gzip')
    assert.equal((await api.call('HEAD', `${archive}?path=/none`)).status, 404)
  })

  it('fail like any call when there is nothing to pack', async () => {
    assert.equal((await api.call('GET', `${archive}?path=/none`)).status, 404)
  })

  it('break the connection when packing fails half way', async () => {
    const archiveOf = api.files.archive
    api.files.archive = async () =>
      (async function* () {
        yield randomBytes(200_000)
        throw new Error('gone')
      })()
    for (const gzip of ['true', 'false']) {
      await assert.rejects(
        async () => await (await api.call('GET', `${archive}?path=/tree&gzip=${gzip}`)).arrayBuffer(),
      )
    }
    api.files.archive = archiveOf
  })

  it('are unpacked whether they are compressed or not', async () => {
    for (const [path, body] of [
      ['/plain', tar],
      ['/packed', gzipSync(tar)],
    ] as const) {
      const response = await api.call('PUT', `${archive}?path=${path}`, body)
      assert.equal(response.status, 200)
      assert.deepEqual(await response.json(), { count: 1 })
      assert.deepEqual(api.files.content.get(path), tar)
    }
    assert.equal((await api.call('PUT', `${archive}?path=/none`, new Uint8Array())).status, 200)
    assert.equal((await api.call('PUT', `${archive}?path=/one`, new Uint8Array([0x1f]))).status, 200)
  })

  it('are refused when the compression is broken or cut off', async () => {
    const broken = gzipSync(tar)
    broken.fill(0xff, 100, 200)
    for (const body of [broken, gzipSync(tar).subarray(0, 1000), Buffer.from([0x1f, 0x8b])]) {
      const response = await api.call('PUT', `${archive}?path=/broken`, body)
      assert.equal(response.status, 400)
      assert.equal(((await response.json()) as ErrorBody).error.code, 'bad_request')
      assert.equal(api.files.content.has('/broken'), false)
    }
  })
})
