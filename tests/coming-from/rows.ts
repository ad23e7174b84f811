// Keeps a page of docs/coming-from and its tests equal: a test for each row, a row for each test.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/server.ts'

export type Rows = Record<string, () => Promise<void>>

export function testRows(page: string, rows: Rows): void {
  test(`${page} has a row for each of these tests, and a test for each row`, () => {
    assert.deepEqual(Object.keys(rows), rowsOf(page))
  })
  for (const [row, check] of Object.entries(rows)) test(row, check)
}

/** The first column of every table, without its backticks. */
function rowsOf(page: string): string[] {
  const text = readFileSync(join(root, 'docs/coming-from', page), 'utf8')
  return [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]!)
}
