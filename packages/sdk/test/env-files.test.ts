import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Sandbox } from '../src/index.ts'

const apiKey = TEST_KEY
let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey })
})
after(() => api[Symbol.asyncDispose]())

test('env files are made, read, merged and emptied', async () => {
  const { env, files } = sandbox
  assert.equal(await env.exists('.env.local'), false)
  await assert.rejects(env.retrieve('.env.local'), (error) => hasCode(error, 'file_not_found'))
  await assert.rejects(env.remove('.env.local', ['A']), (error) => hasCode(error, 'file_not_found'))
  assert.deepEqual(await env.update('.env.local', { DEBUG: 'true', NAME: "it's" }), ['DEBUG', 'NAME'])
  assert.equal(await env.exists('.env.local'), true)
  await files.write('.env.local', `# by hand\n${await files.read('.env.local')}`)
  assert.deepEqual(await env.update('.env.local', { DEBUG: 'false' }), ['DEBUG'])
  assert.deepEqual(await env.retrieve('.env.local'), { DEBUG: 'false', NAME: "it's" })
  assert.equal(await files.read('.env.local'), '# by hand\nDEBUG=false\nNAME="it\'s"\n')
  assert.deepEqual(await env.remove('.env.local', ['DEBUG', 'OTHER']), ['DEBUG'])
  assert.deepEqual(await env.remove('.env.local', []), [])
  assert.deepEqual(await env.retrieve('.env.local'), { NAME: "it's" })
})

test('more keys than fit in an address are removed all the same', async () => {
  const { env, files } = sandbox
  const keys = Array.from({ length: 1500 }, (_, index) => `A_RATHER_LONG_NAME_OF_A_VARIABLE_${index}`)
  await files.write('many', keys.map((key) => `${key}=1\n`).join(''))
  assert.deepEqual(await env.remove('many', keys), keys)
  assert.equal(await files.read('many'), '')
})
