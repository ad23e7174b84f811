import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { newId } from '@islet/contract'
import { createLog } from '../../log.ts'
import { Outputs } from './outputs.ts'

const HOUR_MS = 3_600_000
const dir = mkdtempSync(join(tmpdir(), 'islet-outputs-'))
after(() => rmSync(dir, { recursive: true }))

function printed(): string {
  const id = newId('sandbox')
  mkdirSync(join(dir, id))
  writeFileSync(join(dir, id, `${newId('process')}.log`), 'kept')
  return id
}

const until = async (isSo: () => boolean) => {
  while (!isSo()) await setTimeout(5)
}

test('output of a stopped sandbox stays for an hour, also across servers; that of others is left alone', async (t) => {
  const stopped = new Map<string, number>()
  const [there, recent, old, forgotten] = [printed(), printed(), printed(), printed()]
  stopped.set(recent, Date.now() - HOUR_MS / 2)
  stopped.set(old, Date.now() - HOUR_MS - 1000)
  stopped.set(forgotten, 0)
  mkdirSync(join(dir, 'not-a-sandbox'))
  t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.now() })
  const bytes = 1024 ** 2
  const outputs = new Outputs(
    { dir, keepBytes: bytes, sandboxBytes: bytes, totalBytes: 1024 * bytes, hasRoom: () => true },
    {
      running: () => undefined,
      unended: () => new Set(),
      sandboxes: { stoppedAt: (id) => stopped.get(id) },
      log: createLog({ level: 'silent' }),
    },
  )
  await until(() => !existsSync(join(dir, old)) && !existsSync(join(dir, forgotten)))
  outputs.gone(there, { removed: true })
  outputs.gone(newId('sandbox'), { removed: true })
  assert.deepEqual(readdirSync(dir).sort(), [there, recent, 'not-a-sandbox'].sort())
  t.mock.timers.tick(HOUR_MS / 2 + 60_000)
  await until(() => !existsSync(join(dir, recent)))
  assert.ok(existsSync(join(dir, there)))
  t.mock.timers.tick(HOUR_MS / 2 + 60_000)
  await until(() => !existsSync(join(dir, there)))
  outputs.close()
})
