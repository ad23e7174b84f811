import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Sandbox } from '../src/index.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi({ previewDomain: 'preview.example.com' })
  sandbox = await Sandbox.create({ url: api.url, apiKey: TEST_KEY })
})
after(() => api[Symbol.asyncDispose]())

test('previews are made, listed and deleted', async () => {
  const made = await sandbox.createPreviewURL({ port: 3000, authConfig: { type: 'token' } })
  assert.equal(made.sandboxId, sandbox.id)
  assert.equal(made.url, `https://3000-${sandbox.id}.preview.example.com`)
  const { token, ...rest } = made
  assert.ok(token)
  assert.deepEqual(await sandbox.listPreviewURLs(), [rest])
  const own = await sandbox.createPreviewURL({ port: 3001, domain: 'app.example.org' })
  assert.equal(own.url, 'https://app.example.org')
  await sandbox.deletePreviewURL(3001)
  await assert.rejects(sandbox.deletePreviewURL(3001), (error) => hasCode(error, 'preview_not_found'))
})

test('the URL of a port is made when it is asked for, and asking changes nothing', async () => {
  const url = await sandbox.getUrl({ port: 4000 })
  assert.equal(url, `https://4000-${sandbox.id}.preview.example.com`)
  assert.equal(await sandbox.getUrl({ port: 4000, protocol: 'https' }), url)
  await assert.rejects(sandbox.getUrl({ port: 4000, protocol: 'http' }), (error) =>
    hasCode(error, 'not_supported'),
  )
  await sandbox.createPreviewURL({ port: 4000, authConfig: { type: 'token' } })
  await sandbox.getUrl({ port: 4000 })
  const [found] = (await sandbox.listPreviewURLs()).filter(({ port }) => port === 4000)
  assert.deepEqual(found?.authConfig, { type: 'token' })
})
