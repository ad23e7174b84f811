import assert from 'node:assert/strict'
import { test } from 'node:test'
import { baseName, joinPath, parseFileFlag, parseLocation } from './location.ts'

test('a colon before any slash means a sandbox', () => {
  assert.deepEqual(parseLocation('dev:/a:b'), { kind: 'remote', sandbox: 'dev', path: '/a:b' })
  assert.deepEqual(parseLocation('dev:'), { kind: 'remote', sandbox: 'dev', path: '.' })
  assert.deepEqual(parseLocation('./a:b'), { kind: 'local', path: './a:b' })
  assert.deepEqual(parseLocation('/a:b'), { kind: 'local', path: '/a:b' })
  assert.deepEqual(parseLocation('-'), { kind: 'stdio' })
  assert.throws(() => parseLocation(''), { code: 'usage' })
})

test('--file splits at its last colon', () => {
  assert.deepEqual(parseFileFlag('./a:b:/tmp/c'), { local: './a:b', remote: '/tmp/c' })
  for (const text of ['a', 'a:', ':b']) assert.throws(() => parseFileFlag(text), { code: 'usage' })
})

test('names and joins ignore trailing slashes', () => {
  assert.deepEqual(['/a/b/', 'b', '.', '/', '..'].map(baseName), ['b', 'b', '', '', ''])
  assert.equal(joinPath('/a/', 'b'), '/a/b')
  assert.equal(joinPath('/a', ''), '/a')
})
