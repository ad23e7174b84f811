import assert from 'node:assert/strict'
import { test } from 'node:test'
import { languageOf } from './code.ts'

test('the extension of a file tells its language', () => {
  const files = [
    'a.py',
    'a.js',
    'a.cjs',
    'a.mjs',
    'a.ts',
    'a.cts',
    'a.mts',
    'a.sh',
    'a.BASH',
    'a.txt',
    undefined,
  ]
  assert.deepEqual(files.map(languageOf), [
    'python',
    ...['node', 'node', 'node'],
    ...['typescript', 'typescript', 'typescript'],
    ...['shell', 'shell'],
    ...[undefined, undefined],
  ])
})
