import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Sandbox } from '../src/index.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey: TEST_KEY })
})
after(() => api[Symbol.asyncDispose]())

test('the language is found out, given by itself, or one of the options', async () => {
  const found = await sandbox.runCode('print("Hello")')
  assert.deepEqual([found.language, found.output, found.exitCode], ['python', 'Hello\n', 0])
  const given = await sandbox.runCode('print("Hello")', 'shell')
  assert.equal(given.language, 'shell')
  assert.notEqual(given.exitCode, 0)
  const both = await sandbox.runCode('echo $A', 'shell', { env: { A: 'b' }, cwd: '/' })
  assert.equal(both.output, 'b\n')
  const option = await sandbox.runCode('echo $A; exit 4', { language: 'shell', env: { A: 'c' } })
  assert.deepEqual([option.output, option.exitCode], ['c\n', 4])
})

test('aborting rejects, and bad code is an error of the server', async () => {
  const signal = AbortSignal.timeout(100)
  await assert.rejects(sandbox.runCode('sleep 600', 'shell', { signal }), { name: 'AbortError' })
  await assert.rejects(sandbox.runCode(''), (error) => hasCode(error, 'bad_request'))
})
