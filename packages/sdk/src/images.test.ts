import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startStub } from '../test/stub.ts'
import { hasCode, Islet } from './index.ts'

const IMAGE = {
  name: 'img-0123456789abcdef',
  digest: 'sha256:0',
  source: { kind: 'oci', reference: 'docker.io/library/alpine:3' },
  sizeBytes: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  runtimes: ['alpine'],
}
const step = { type: 'progress', stage: 'download', message: 'layer 1', fraction: 0.5 }
const lines = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

test('a pull reports its progress and resolves with the image', async () => {
  await using stub = await startStub(() => ({ body: lines(step, step, { type: 'done', image: IMAGE }) }))
  const seen: string[] = []
  const image = await islet(stub.url).images.pull('alpine:3', {
    name: 'alpine',
    onProgress: ({ message }) => void seen.push(message),
  })
  assert.equal(image.name, IMAGE.name)
  assert.deepEqual(seen, ['layer 1', 'layer 1'])
  assert.deepEqual(JSON.parse(stub.asked[0]!.body), { reference: 'alpine:3', name: 'alpine' })
})

test('an error at the end of the lines is thrown', async () => {
  const error = { code: 'image_not_found', message: 'No such tag.', retryable: false }
  await using stub = await startStub(() => ({ body: lines(step, { type: 'error', error }) }))
  await assert.rejects(islet(stub.url).images.pull('x'), (error) => hasCode(error, 'image_not_found'))
})

test('lines that stop early are an error', async () => {
  await using stub = await startStub(() => ({ body: lines(step) }))
  await assert.rejects(islet(stub.url).images.build(), (error) => hasCode(error, 'bad_response'))
})

test('a name with slashes is one part of the path', async () => {
  await using stub = await startStub(() => ({ status: 204 }))
  await islet(stub.url).images.remove('docker.io/library/alpine:3')
  assert.equal(stub.asked[0]?.path, '/v1/images/docker.io%2Flibrary%2Falpine%3A3')
})

function islet(url: string): Islet {
  return new Islet({ url, apiKey: 'test-key-test-key' })
}
