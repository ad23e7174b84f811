import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { lastError } from './runtime.ts'

const directory = mkdtempSync(join(tmpdir(), 'islet-runtime-'))
after(() => rmSync(directory, { recursive: true }))

test('of what a runtime logged the last is told, however long the log is and whatever is in it', async () => {
  const log = join(directory, 'runtime.log')
  const told = (text: string) => {
    writeFileSync(log, text)
    return lastError(log)
  }
  const line = (message: string) => `${JSON.stringify({ level: 'error', msg: message })}\n`
  assert.equal(await told(line('first') + line('last\nand more')), 'last')
  assert.equal(await told(`${line('x').repeat(1_000_000)}${line('the end')}`), 'the end')
  assert.equal(await told(`{"msg":"${'y'.repeat(1_000_000)}"}\n`), undefined)
  assert.equal(await told('{"msg":"\\x is no JSON"}\n'), undefined)
  assert.equal(await told(''), undefined)
  assert.equal(await lastError(join(directory, 'none')), undefined)
})
