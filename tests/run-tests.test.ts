// The verdict of scripts/test on test files that fail, fail once, crash, never end, or have no test.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from './coming-from/until.ts'

const RUNNER = fileURLToPath(new URL('../scripts/run-tests.ts', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'islet-run-tests-test-'))
after(() => rmSync(directory, { recursive: true, force: true }))

test('a file that fails once is named as flaky, and the run passes', async () => {
  const once = `{ const fs = await import('node:fs'); if (!fs.existsSync('${directory}/was')) { fs.writeFileSync('${directory}/was', ''); throw new Error('too early') } }`
  // The test that fails is written down in a file that holds no test of its own.
  writeFileSync(
    join(directory, 'suite.ts'),
    `import { test } from 'node:test'\nexport const shaky = () => test('shaky', async () => ${once})\n`,
  )
  const flaky = write(
    'flaky',
    `import { shaky } from './suite.ts'\ntest('fine', () => {}); describe('shared', shaky); test.skip('not now')`,
  )
  const { output, code } = await run(flaky, write('good', `test('good', () => {})`))
  assert.match(
    output,
    /\nFlaky, failed and then passed alone: .*flaky\.test\.ts\. The first error:\n {2}shaky\n {2}Error: too early\n/,
  )
  assert.match(output, /ℹ tests 4\n/, 'the summary of node --test is there')
  assert.match(output, /\ntests: 3 passed, 0 failed, 1 skipped\n$/)
  assert.equal(code, 0)
})

test('a file that fails twice, crashes, does not end or has no test has failed', async () => {
  const files = [
    write('bad', `describe('all', () => { test('always', () => { throw new Error('as ever') }) })`),
    write('crash', `test('fine', () => {}); setImmediate(() => { throw new Error('out of nowhere') })`),
    write(
      'killed',
      `test('fine', () => { console.error('no more memory'); process.kill(process.pid, 'SIGKILL') })`,
    ),
    write('endless', `test('leaves something', () => void setInterval(() => {}, 1000))`),
    write('empty', `console.log('no test here')`),
    write('good', `test('good', () => {})`),
  ]
  const { output, code } = await run(...files)
  for (const [name, error] of [
    ['bad', 'always\n {2}Error: as ever'],
    ['crash', '.*\n {2}.*Error: out of nowhere'],
    ['killed', '.*\n {2}no more memory\n'],
    ['endless', '.*\n {2}.*All tests are over, but the process is not'],
    ['empty', 'There is no test in this file'],
  ]) {
    assert.match(
      output,
      new RegExp(`\nFailed twice: .*${name}\\.test\\.ts\\. The first error:\n {2}${error}`),
    )
  }
  assert.doesNotMatch(output, /(Flaky|twice).*good/)
  assert.match(output, /\ntests: \d passed, 5 failed, 0 skipped\n$/)
  assert.equal(code, 1)
})

test('a path without a test file is a failure', async () => {
  const { output, code } = await run(join(directory, 'nowhere-*.test.ts'))
  assert.match(output, /No test file was run: .*nowhere.*\n\ntests: 0 passed, 1 failed, 0 skipped\n$/)
  assert.equal(code, 1)
})

test('an interrupt ends the test files and what they started', async () => {
  const pids = join(directory, 'pids')
  const child = `(await import('node:child_process')).spawn('sleep', ['1000'])`
  const note = `(await import('node:fs')).writeFileSync('${pids}', process.pid + ' ' + ${child}.pid + ' .')`
  const runner = start(
    write(
      'slow',
      `test('slow', async () => { ${note}; await new Promise(() => setInterval(() => {}, 1000)) })`,
    ),
  )
  const ended = once(runner, 'exit')
  await until(() => existsSync(pids) && readFileSync(pids, 'utf8').endsWith('.'))
  runner.kill('SIGTERM')
  const [code] = await ended
  assert.equal(code, 128 + 15)
  for (const pid of readFileSync(pids, 'utf8').split(' ').slice(0, 2)) {
    await until(() => !existsSync(`/proc/${pid}`))
  }
})

function write(name: string, text: string): string {
  const file = join(directory, `${name}.test.ts`)
  writeFileSync(file, `import { describe, test } from 'node:test'\n${text}\n`)
  return file
}

function start(...files: string[]): ChildProcess {
  const env = { ...process.env, TEST_END_MS: '300' }
  return spawn(process.execPath, [RUNNER, ...files], { env, stdio: ['ignore', 'pipe', 'pipe'] })
}

async function run(...files: string[]): Promise<{ output: string; code: number | null }> {
  const runner = start(...files)
  let output = ''
  runner.stdout!.on('data', (chunk) => {
    output += chunk
  })
  const [code] = await once(runner, 'close')
  return { output, code }
}
