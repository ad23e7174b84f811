import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { patchCommand, patchInput, whyFailed } from './patch-script.ts'

const MARK = 'prc-0123456789abcdefghij'

function bash(input: string): { code: number | null; out: string } {
  const [program, ...args] = patchCommand('pat-0123456789abcdefghij', MARK)
  const { status, stdout } = spawnSync(program!, args, { input, encoding: 'utf8' })
  return { code: status, out: stdout }
}

test('a script runs unchanged, without traces of how it was sent', () => {
  const script = `#!/bin/bash\necho "$# \${p-none} $LINENO"\ncat\nprintf '%s\\n' "it's \\"quoted\\" \\$HOME"\nexit 5`
  assert.deepEqual(bash(patchInput(MARK, script)), { code: 5, out: `0 none 2\nit's "quoted" $HOME\n` })
})

test('a script that was cut off is not run; the whole script sent after it runs once', () => {
  const whole = patchInput(MARK, 'echo one\necho two\n')
  for (const length of [0, 1, MARK.length, MARK.length + 9, whole.length - 2, whole.length - 1])
    assert.deepEqual(bash(`${whole.slice(0, length)}\0${whole}`), { code: 0, out: 'one\ntwo\n' }, `${length}`)
  assert.deepEqual(
    bash(`${whole}\0${whole}`),
    { code: 0, out: 'one\ntwo\n' },
    'a process that has the whole script ignores a second one',
  )
})

test('a script without its end is not run at all', () => {
  const whole = patchInput(MARK, 'echo one\n')
  for (const input of ['', MARK, whole.slice(0, 30), whole.slice(0, -2), `${whole.slice(0, 30)}\0`])
    assert.deepEqual(bash(input), { code: 125, out: '' })
})

test('a failure that the script did not cause is explained', () => {
  const result = { exitCode: 124, signal: null, timedOut: false, oom: false, durationMs: 1 }
  assert.equal(whyFailed({ ...result, exitCode: 0 }), null)
  assert.equal(whyFailed(result), null)
  assert.match(whyFailed({ ...result, timedOut: true })!, /longer than 10 minutes/)
  assert.match(whyFailed({ ...result, oom: true, signal: 'SIGKILL' })!, /memory/)
  assert.match(whyFailed({ ...result, signal: 'SIGTERM' })!, /SIGTERM/)
})
