import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Islet } from '../src/index.ts'
import { startProxy } from './proxy.ts'

const apiKey = TEST_KEY
let api: TestApi
let scratch: string
const at = (name: string) => join(scratch, name)
before(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'islet-sdk-images-'))
  mkdirSync(at('root/etc'), { recursive: true })
  writeFileSync(at('root/etc/passwd'), 'root:x:0:0::/root:/bin/sh\n')
  writeFileSync(at('broken.tar'), 'x'.repeat(100_000))
  api = await startTestApi({ importDirs: scratch })
})
after(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(scratch, { recursive: true })
})

const islet = (url = api.url) => new Islet({ url, apiKey })
const importing = { kind: 'directory', name: 'docker.io/library/mine:3' } as const

test('work on an image reports its progress and resolves with the image', async () => {
  const seen: string[] = []
  const { images } = islet()
  const source = { ...importing, path: at('root') }
  const image = await images.import(source, { onProgress: ({ stage }) => void seen.push(stage) })
  assert.deepEqual(image.runtimes, [importing.name])
  assert.ok(seen.includes('unpack'))
  assert.ok((await images.list()).some(({ name }) => name === image.name))
})

test('a name with slashes is one part of the path', async () => {
  const { images } = islet()
  const { name } = await images.import({ ...importing, path: at('root') })
  await images.remove(importing.name)
  assert.ok(!(await images.list()).some((image) => image.name === name))
})

test('an error is thrown whether it comes at once or after some progress', async () => {
  const { images } = islet()
  await assert.rejects(images.import({ kind: 'tar', path: at('none'), name: 'x' }), (error) =>
    hasCode(error, 'file_not_found'),
  )
  await assert.rejects(images.import({ kind: 'tar', path: at('broken.tar'), name: 'x' }), (error) =>
    hasCode(error, 'bad_request'),
  )
})

test('lines that stop early are an error', async () => {
  await using proxy = await startProxy(api.url, () => ({ cut: 'body cleanly', afterBytes: 1 }))
  await using half = await startProxy(api.url, () => ({ cut: 'body', afterBytes: 1 }))
  const source = { ...importing, path: at('root') }
  await assert.rejects(islet(proxy.url).images.import(source), (error) => hasCode(error, 'bad_response'))
  await assert.rejects(islet(half.url).images.import(source), (error) => hasCode(error, 'connection_failed'))
})
