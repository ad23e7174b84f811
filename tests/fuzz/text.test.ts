// Text of users that is parsed here: .env files, code whose language is looked for, patterns, sizes and times, name servers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IsletError, LANGUAGES, parseCpuMillis, parseDurationMs, parseSizeBytes } from '@islet/contract'
import { detectLanguage } from '../../packages/server/src/data/code/detect.ts'
import { removeEnv, updateEnv } from '../../packages/server/src/data/env-files/edit.ts'
import { parseEnv, parseSegments, textOf } from '../../packages/server/src/data/env-files/parse.ts'
import { createIgnore } from '../../packages/server/src/data/files/globs.ts'
import { nameserversIn } from '../../packages/server/src/engine/oci/dns.ts'
import { corpus, Random, repeatedly, SEED } from './fuzz.ts'

const BATCH = 20

test(`text of any kind is parsed, and what is written into a .env file is read from it again (seed ${SEED})`, async () => {
  const random = new Random(SEED + 2)
  for (const bytes of corpus('text')) check(bytes.toString(), random)
  const cases = await repeatedly(() => {
    for (let n = 0; n < BATCH; n++) check(random.text(random.pick([5, 40, 400])), random)
  })
  console.log(`${cases * BATCH} texts`)
})

function check(text: string, random: Random): void {
  const told = JSON.stringify(text)
  assert.equal(parseSegments(text).map(textOf).join(''), text, told)
  const variables = { A: random.text(8), [random.pick(['B', 'a.b', '__proto__'])]: random.text(8) }
  const updated = unlessRefused(() => updateEnv(text, variables)) ?? text
  if (updated !== text) {
    for (const [key, value] of Object.entries(variables))
      assert.equal(ownOf(parseEnv(updated), key), value, `${told} ${JSON.stringify(variables)}`)
  }
  const removed = unlessRefused(() => removeEnv(updated, ['A']))
  if (removed) assert.equal(ownOf(parseEnv(removed.text), 'A'), undefined, told)
  assert.ok((LANGUAGES as readonly string[]).includes(detectLanguage(text)), told)
  unlessRefused(() => createIgnore([text.slice(0, 200)], '/')(`/${random.text(10)}`))
  for (const parse of [parseCpuMillis, parseDurationMs, parseSizeBytes]) {
    const parsed = parse(text)
    assert.ok(parsed === undefined || Number.isSafeInteger(parsed), `${told}: ${parsed}`)
  }
  nameserversIn(text)
}

/** A refused input gets an error of the table. */
function unlessRefused<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    assert.ok(error instanceof IsletError && error.code !== 'internal', String((error as Error).stack))
    return undefined
  }
}

function ownOf(object: Record<string, string>, key: string): string | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}
