import assert from 'node:assert/strict'
import { test } from 'node:test'
import { baseName, joinPath, parseLocation, toFiles } from './location.ts'

test('a colon before any slash means a sandbox', () => {
  assert.deepEqual(parseLocation('dev:/a:b'), { kind: 'remote', sandbox: 'dev', path: '/a:b' })
  assert.deepEqual(parseLocation('dev:'), { kind: 'remote', sandbox: 'dev', path: '.' })
  assert.deepEqual(parseLocation('./a:b'), { kind: 'local', path: './a:b' })
  assert.deepEqual(parseLocation('/a:b'), { kind: 'local', path: '/a:b' })
  assert.deepEqual(parseLocation('-'), { kind: 'stdio' })
  assert.throws(() => parseLocation(''), { code: 'usage' })
})

test('--file splits at its last colon, and a relative path is below the directory of the command', () => {
  const one = (text: string, cwd?: string) => toFiles([text], cwd)[0]
  assert.deepEqual(one('./a:b:/tmp/c', 'dir'), { local: './a:b', remote: '/tmp/c' })
  assert.deepEqual(one('a:b', 'dir'), { local: 'a', remote: 'dir/b' })
  assert.deepEqual(one('a:b'), { local: 'a', remote: 'b' })
  for (const text of ['a', 'a:', ':b']) assert.throws(() => one(text), { code: 'usage' })
})

test('names and joins ignore trailing slashes', () => {
  assert.deepEqual(['/a/b/', 'b', '.', '/', '..'].map(baseName), ['b', 'b', '', '', ''])
  assert.equal(joinPath('/a/', 'b'), '/a/b')
  assert.equal(joinPath('/a', ''), '/a')
})
