// The runner of all other tests: whatever one of them leaves open, the run ends, and says so.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const GUARD = fileURLToPath(new URL('../scripts/test-end.ts', import.meta.url))
const LEAK = 'setInterval(() => {}, 1000)'
const END = { TEST_END_MS: '300' }
const OVER = /All tests are over, but the process is not\. What keeps it: .*Timeout/

test('a file that leaves something open fails, whether its tests pass or not', (t) => {
  const left = run(t, `test('fine', () => void ${LEAK})`, END)
  assert.match(left.output, OVER)
  assert.match(left.output, /# pass 1\n# fail 1\n/)
  assert.equal(left.status, 1)
  const broken = run(t, `test('broken', () => { ${LEAK}; throw new Error('in the middle') })`, END)
  assert.match(broken.output, OVER)
  assert.match(broken.output, /in the middle/)
  assert.equal(broken.status, 1)
})

test('a file in which no test begins fails', (t) => {
  const { output, status } = run(t, `${LEAK}; await new Promise(() => {}); test('never', () => {})`, {
    TEST_BEGIN_MS: '1000',
  })
  assert.match(output, /No test has begun\./)
  assert.equal(status, 1)
})

test('a file that closes what it opened passes', (t) => {
  const fine = `describe('all', () => { test('fine', () => clearInterval(timer)) })`
  const { output, status } = run(t, `const timer = ${LEAK}; ${fine}`)
  assert.doesNotMatch(output, /What keeps it/)
  assert.equal(status, 0)
})

function run(t: TestContext, text: string, limit = {}): { output: string; status: number | null } {
  const directory = mkdtempSync(join(tmpdir(), 'islet-test-end-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'scratch.test.ts')
  writeFileSync(file, `import { describe, test } from 'node:test'\n${text}\n`)
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined, ...limit }
  const args = ['--import', GUARD, '--test', '--test-reporter=tap', file]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
  return { output: stdout + stderr, status }
}
