// What can be told, what is told and what is written about it are the same.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { EVENT_TYPES } from '@islet/contract'
import { MOVES } from './lifecycle.ts'

const SOURCE = join(import.meta.dirname, '..')
const PAGE = join(import.meta.dirname, '../../../../docs/guide/events.md')

test('every event type is written somewhere in the code', () => {
  const told = new Set<string>(Object.values(MOVES).map(({ event }) => event))
  for (const path of globSync('{control,data}/**/*.ts', { cwd: SOURCE, exclude: ['**/*.test.ts'] })) {
    const text = readFileSync(join(SOURCE, path), 'utf8')
    if (!/\bevents\.add\(/.test(text)) continue
    for (const type of EVENT_TYPES) if (text.includes(`'${type}'`)) told.add(type)
  }
  assert.deepEqual([...told].sort(), [...EVENT_TYPES].sort())
})

test('docs/guide/events.md has a row for each of them, and no other', () => {
  const text = readFileSync(PAGE, 'utf8')
  const table = text.slice(text.indexOf('## Types'), text.indexOf('## On the command line'))
  const rows = [...table.matchAll(/^\| `([\w.-]+)`/gm)].map((match) => match[1])
  assert.deepEqual(rows, [...EVENT_TYPES])
})
