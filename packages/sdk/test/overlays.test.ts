import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Sandbox } from '../src/index.ts'

const apiKey = TEST_KEY
let api: TestApi
let sandbox: Sandbox
let source: string
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey })
  source = `${(await sandbox.getInfo()).workdir}/template`
  await sandbox.files.write('template/main.js', 'main')
  await sandbox.files.write('template/node_modules/dep/index.js', 'dep')
  const many = Array.from({ length: 800 }, (_, index) => ({
    path: `large/${index % 20}/${index}`,
    operation: 'write' as const,
    content: 'x',
  }))
  assert.ok((await sandbox.files.batchWrite(many)).every(({ success }) => success))
})
after(() => api[Symbol.asyncDispose]())

const WAIT = { initialDelayMs: 10, maxDelayMs: 100, maxRetries: 10_000 }

test('an overlay is made, found, waited for and destroyed', async () => {
  const { overlay } = sandbox.files
  const begun = await overlay.create({ source, target: './app' })
  assert.ok(['pending', 'in_progress'].includes(begun.copyStatus))
  const done = await overlay.waitForCompletion(begun.id, WAIT)
  assert.equal(done.copyStatus, 'complete')
  assert.deepEqual(await overlay.retrieve(begun.id), done)
  assert.deepEqual(await overlay.list(), [done])
  assert.equal(await sandbox.files.read('app/node_modules/dep/index.js'), 'dep')
  await overlay.destroy(begun.id)
  assert.equal(await sandbox.files.exists('app'), false)
  assert.deepEqual(await overlay.list(), [])
  await assert.rejects(overlay.retrieve(begun.id), (error) => hasCode(error, 'overlay_not_found'))
})

test('create waits when it is told to, also until the copying has failed', async () => {
  const { overlay } = sandbox.files
  const whole = await overlay.create({ source, target: 'whole', strategy: 'copy', waitForCompletion: true })
  assert.equal(whole.copyStatus, 'complete')
  await sandbox.files.write('clash/main.js/in-the-way', '')
  const clash = await overlay.create({ source, target: 'clash', waitForCompletion: WAIT })
  assert.equal(clash.copyStatus, 'failed')
  assert.ok(clash.copyError)
})

test('waiting ends with timeout after all retries, or when it is aborted; the copying continues', async () => {
  const { overlay } = sandbox.files
  const large = source.replace(/template$/, 'large')
  const begun = await Promise.all(
    Array.from({ length: 10 }, (_, index) => overlay.create({ source: large, target: `copy-${index}` })),
  )
  const last = begun.at(-1)!.id
  await assert.rejects(overlay.waitForCompletion(last, { maxRetries: 0 }), (error) =>
    hasCode(error, 'timeout'),
  )
  const signal = AbortSignal.abort()
  await assert.rejects(overlay.waitForCompletion(last, { signal }), { name: 'AbortError' })
  for (const { id } of begun) assert.equal((await overlay.waitForCompletion(id, WAIT)).copyStatus, 'complete')
})
