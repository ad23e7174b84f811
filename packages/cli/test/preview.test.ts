import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { islet } from './islet.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
  await api.createSandbox({ name: 'dev' })
})
after(() => api[Symbol.asyncDispose]())

const preview = (...words: string[]) => islet(['preview', ...words], api)

test('preview prints the URL of a port, ls lists it and rm takes it away', async () => {
  const made = await preview('dev', '3000')
  assert.match(made.stdout, /^http:\/\/127\.0\.0\.1:\d+\n$/)
  assert.equal(made.stderr, '')
  assert.equal((await preview('dev', '3000')).stdout, made.stdout)
  const table = await preview('ls', 'dev')
  assert.match(table.stdout, /^PORT +URL +ASKS FOR +AGE\n3000 +http:\/\/127\.0\.0\.1:\d+ +- /)
  const [listed] = JSON.parse((await preview('ls', 'dev', '--json')).stdout)
  assert.equal(`${listed.url}\n`, made.stdout)
  assert.equal((await preview('rm', 'dev', '3000')).stdout, '3000\n')
  const gone = await preview('rm', 'dev', '3000')
  assert.equal(gone.exitCode, 1)
  assert.match(gone.stderr, /hint: islet preview ls/)
  assert.match((await preview('ls', 'dev')).stderr, /no previews/)
})

test('preview --token prints a token once, and asking again does not open it', async () => {
  const [url, token] = (await preview('dev', '3001', '--token')).stdout.split('\n')
  assert.match(token!, /^[\w-]{43}$/)
  assert.equal((await preview('dev', '3001')).stdout, `${url}\n`)
  assert.equal((await fetch(url!)).status, 401)
  assert.notEqual((await fetch(url!, { headers: { Authorization: `Bearer ${token}` } })).status, 401)
  const named = JSON.parse((await preview('dev', '3001', '--domain', 'app.example.org', '--json')).stdout)
  assert.equal(named.domain, 'app.example.org')
})

test('what cannot be meant ends with a hint', async () => {
  for (const words of [['dev'], ['dev', 'x'], ['ls'], ['rm', 'dev']]) {
    const { exitCode, stderr } = await preview(...words)
    assert.equal(exitCode, 2, words.join(' '))
    assert.match(stderr, /hint:/)
  }
  assert.equal((await preview('dev', '99999')).exitCode, 1)
})
