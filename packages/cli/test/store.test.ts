import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { SandboxToken } from '@islet/contract/client'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { islet, type RunOptions } from './islet.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
  await api.createSandbox({ name: 'dev' })
})
after(() => api[Symbol.asyncDispose]())

const store = (words: string[], options: RunOptions = {}) =>
  islet(['store', ...words], { url: api.url, ...options })

test('a value is set, printed, listed and deleted', async () => {
  const set = await store(['set', 'dev', 'progress', '{"step": 3}', '--ttl', '1h'])
  assert.deepEqual([set.exitCode, set.stdout, set.stderr], [0, '', ''])
  assert.deepEqual(JSON.parse((await store(['get', 'dev', 'progress'])).stdout), { step: 3 })
  const entry = JSON.parse((await store(['get', 'dev', 'progress', '--json'])).stdout)
  assert.ok(Math.abs(Date.parse(entry.expires_at) - Date.now() - 3_600_000) < 60_000)
  await store(['set', 'dev', 'status', '--string', 'it is busy'])
  assert.equal((await store(['get', 'dev', 'status', '--string'])).stdout, 'it is busy\n')
  assert.equal((await store(['get', 'dev', 'status'])).stdout, '"it is busy"\n')
  await store(['set', 'dev', '..'], { stdin: '[1, 2]' })
  await store(['set', 'dev', 'two\nlines', '-', '--string'], { stdin: 'text' })
  assert.equal((await store(['ls', 'dev'])).stdout, '..\nprogress\nstatus\n"two\\nlines"\n')
  assert.equal((await store(['ls', 'dev', 'pro'])).stdout, 'progress\n')
  const some = await store(['ls', 'dev', '--limit', '1'])
  assert.equal(some.stdout, '..\n')
  assert.match(some.stderr, /more/)
  assert.equal((await store(['rm', 'dev', 'status', 'nope', '..'])).stdout, 'status\n..\n')
  assert.deepEqual(JSON.parse((await store(['rm', 'dev', 'status', '--json'])).stdout), [])
})

test('a batch comes from stdin or from a file', async () => {
  const operations = [
    { op: 'set', key: 'a', value: 1 },
    { op: 'delete', key: 'b' },
  ]
  assert.equal((await store(['batch', 'dev'], { stdin: JSON.stringify(operations) })).stdout, '2\n')
  const directory = mkdtempSync(join(tmpdir(), 'islet-batch-'))
  try {
    const path = join(directory, 'operations.json')
    writeFileSync(path, JSON.stringify(operations))
    const { stdout } = await store(['batch', 'dev', path, '--json'])
    assert.deepEqual(JSON.parse(stdout), { applied: 2, ok: true })
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('what goes wrong ends with a hint', async () => {
  const missing = await store(['get', 'dev', 'missing'])
  assert.deepEqual([missing.exitCode, missing.stdout], [1, ''])
  assert.match(missing.stderr, /hint: islet store ls/)
  const json = await store(['get', 'dev', 'missing', '--json'])
  assert.equal(JSON.parse(json.stderr).error.code, 'key_not_found')
  for (const words of [
    ['set', 'dev', 'x', 'not json'],
    ['set', 'dev', 'x', '1', '--ttl', 'soon'],
    ['batch', 'dev', '-'],
    ['frob'],
  ]) {
    const { exitCode, stderr } = await store(words)
    assert.equal(exitCode, 2, words.join(' '))
    assert.match(stderr, /hint:/)
  }
  assert.equal((await store(['batch', 'dev', '/nope/nope.json'])).exitCode, 1)
  assert.equal((await store(['batch', 'dev'], { stdin: '[{"op": "set", "key": "x"}]' })).exitCode, 1)
})

test('a token is printed, and nothing beside it on stdout', async () => {
  const { stdout, stderr } = await islet(['token', 'dev', '--expires', '30m'], api)
  assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  assert.match(stderr, /alone, until/)
  const headers = { Authorization: `Bearer ${stdout.trim()}` }
  assert.equal((await fetch(`${api.url}/v1/store`, { headers })).status, 200)
  const json = JSON.parse((await islet(['token', 'dev', '--json'], api)).stdout) as SandboxToken
  assert.ok(Math.abs(Date.parse(json.expiresAt) - Date.now() - 3_600_000) < 60_000)
  assert.equal((await islet(['token', 'dev', '--expires', '2d'], api)).exitCode, 1)
  assert.equal((await islet(['token', 'dev', '--expires', 'soon'], api)).exitCode, 2)
})
