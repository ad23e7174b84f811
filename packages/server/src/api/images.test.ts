import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type ErrorBody, imageList, imageProgress, runtimeList } from '@islet/contract'
import { startTestApi, type TestApi, until } from './testing.ts'

describe('images', () => {
  let api: TestApi
  before(async () => {
    api = await startTestApi()
  })
  after(() => api[Symbol.asyncDispose]())

  const linesOf = async (response: Response) =>
    (await response.text())
      .trimEnd()
      .split('\n')
      .map((line) => imageProgress.parse(JSON.parse(line)))

  it('and runtimes are listed', async () => {
    const { runtimes } = runtimeList.parse(await (await api.call('GET', '/v1/runtimes')).json())
    assert.deepEqual(
      runtimes.map(({ name, ready, image }) => ({ name, ready, image })),
      [
        { name: 'base', ready: true, image: 'img-0' },
        { name: 'later', ready: false, image: null },
      ],
    )
    imageList.parse(await (await api.call('GET', '/v1/images')).json())
  })

  it('are pulled with a line for every step and the image at the end', async () => {
    const response = await api.call('POST', '/v1/images/pull', { reference: 'works', name: 'mine' })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/x-ndjson')
    const lines = await linesOf(response)
    assert.deepEqual(
      lines.map(({ type }) => type),
      ['progress', 'progress', 'done'],
    )
    const last = lines.at(-1)!
    assert.deepEqual(last.type === 'done' && last.image.runtimes, ['mine'])
  })

  it('fail as an HTTP error before the first line, and as the last line after it', async () => {
    const missing = await api.call('POST', '/v1/images/pull', { reference: 'missing' })
    assert.equal(missing.status, 404)
    assert.equal(((await missing.json()) as ErrorBody).error.code, 'image_not_found')
    const lines = await linesOf(await api.call('POST', '/v1/images/pull', { reference: 'breaks' }))
    const last = lines.at(-1)!
    assert.equal(last.type === 'error' && last.error.code, 'server_disk_full')
  })

  it('are no longer worked on when the client goes away', async () => {
    const controller = new AbortController()
    const response = await api.call(
      'POST',
      '/v1/images/pull',
      { reference: 'slow' },
      { signal: controller.signal },
    )
    await response.body!.getReader().read()
    controller.abort()
    await until(() => api.images.aborted === 1)
  })

  it('are built, imported, collected and removed by names that need escaping', async () => {
    assert.equal(
      (await linesOf(await api.call('POST', '/v1/images/build', { runtime: 'base' }))).at(-1)?.type,
      'done',
    )
    const source = { kind: 'tar', path: '/srv/x.tar' }
    await linesOf(await api.call('POST', '/v1/images/import', { ...source, name: 'x' }))
    assert.deepEqual(api.images.imported, [source])
    assert.deepEqual(await (await api.call('POST', '/v1/images/collect')).json(), {
      removed: ['img-1'],
      freedBytes: 10,
    })
    const name = 'docker.io/library/alpine:3@x'
    assert.equal((await api.call('DELETE', `/v1/images/${encodeURIComponent(name)}`)).status, 204)
    assert.deepEqual(api.images.removed, [name])
    assert.equal((await api.call('DELETE', `/v1/images/${encodeURIComponent('../x')}`)).status, 404)
  })
})
