// Tests name the programs they need, and a machine that was set up has them.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const CHECK = fileURLToPath(new URL('../scripts/check-programs.ts', import.meta.url))
const HELPER = new URL('support/programs.ts', import.meta.url).href

test('a missing program is reported with its package', () => {
  const program = `const { needs } = await import('${HELPER}'); needs('curl', 'mkfs.xfs')`
  const options = { encoding: 'utf8', env: { PATH: '/nowhere' } } as const
  const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], options)
  assert.match(stderr, /These tests need curl, mkfs\.xfs: apt-get install curl xfsprogs/)
  assert.equal(status, 1)
})

test('the check finds programs that a test does not declare, that no table has, or that setup does not install', (t) => {
  const tree = mkdtempSync(join(tmpdir(), 'islet-programs-'))
  t.after(() => rmSync(tree, { recursive: true }))
  for (const directory of ['tests', 'scripts']) mkdirSync(join(tree, directory))
  writeFileSync(join(tree, 'scripts/setup'), 'runtime=(\n  runc crun # curl\n)\ntesting=(git)\n')
  const inside = "await say(sandbox, 'cd /tmp && git clone x')\nawait say(sandbox, 'ls')\n"
  writeFileSync(join(tree, 'tests/bad.test.ts'), `${inside}execFileSync('jq', ['.'])\nspawn('tar')\n`)
  writeFileSync(join(tree, 'tests/good.test.ts'), `needs('git', 'tmux')\n${inside}execFileSync('tmux')\n`)
  const { stderr, status } = spawnSync(process.execPath, [CHECK, tree], { encoding: 'utf8' })
  assert.deepEqual(
    stderr
      .split('\n')
      .filter((line) => line.startsWith('tests/'))
      .sort(),
    [
      'tests/bad.test.ts starts jq, which no table of tests/support/programs.ts lists',
      "tests/bad.test.ts uses git: call needs('git') of tests/support/programs.ts at its top",
    ],
  )
  assert.match(stderr, /^No list of scripts\/setup contains curl, which tests need for curl$/m)
  assert.doesNotMatch(stderr, /contains (git|runc),/)
  assert.equal(status, 1)
})
