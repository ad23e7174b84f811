import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/server.ts'
import { SEEDS } from './blocks.ts'
import { faultsOf } from './seeds.ts'

test('each section of each document is tested by one file', () => {
  const files = globSync('tests/seeds/*.test.ts', { cwd: root }).filter(
    (file) => !file.endsWith('/seeds.test.ts'),
  )
  const tested = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/^testSeed\(\s*'([^']+)'/gm)].map(
      (match) => match[1]!,
    ),
  )
  const sections = Object.entries(SEEDS).flatMap(([seed, parts]) =>
    Object.keys(parts).map((part) => `${seed}/${part}`),
  )
  assert.deepEqual(tested.sort(), sections.sort())
})

test('a block without a test is found, and so is a test without a block', () => {
  const blocks = [
    { number: 1, name: 'first', title: 'it works' },
    { number: 2, name: 'second', title: 'it works too' },
  ]
  assert.deepEqual(faultsOf('a/b', blocks, ['it works', 'another']), [
    'block 2 of a/b (second) has no test "it works too"',
    'no block of a/b has the title "another"',
  ])
  assert.deepEqual(faultsOf('a/b', blocks, ['it works', 'it works too']), [])
})
