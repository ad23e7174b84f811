import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import type { CodeResult, Sandbox } from '@islet/contract/client'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { islet } from './islet.ts'

/** With the Node that runs this, which runs TypeScript. */
const PATH = `PATH=${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`
let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'dev' })
})
after(() => api[Symbol.asyncDispose]())

test('code from stdin runs in its language, with its output and exit code', async () => {
  const stdin = 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nsys.exit(3)\n'
  const ran = await islet(['code', 'dev'], { ...api, stdin })
  assert.deepEqual([ran.stdout, ran.stderr, ran.exitCode], ['out\n', 'err\n', 3])
  const told = await islet(['code', 'dev', '-', '-l', 'shell', '-e', 'A=b'], { ...api, stdin: 'echo $A' })
  assert.equal(told.stdout, 'b\n')
})

test('code from a file runs in the language its name says, unless another is given', async () => {
  const ran = async (name: string, text: string, ...flags: string[]) => {
    const file = join(api.dataDir, name)
    writeFileSync(file, text)
    const { stdout, stderr } = await islet(['code', 'dev', file, '--json', '-e', PATH, ...flags], api)
    assert.notEqual(stdout, '', stderr)
    const { language, output } = JSON.parse(stdout) as CodeResult
    return [language, output]
  }
  const shell = 'print() { echo "shell $1"; }; print 1\n'
  assert.deepEqual(await ran('script.sh', shell), ['shell', 'shell 1\n'])
  assert.deepEqual(await ran('script.BASH', shell), ['shell', 'shell 1\n'])
  assert.deepEqual(await ran('a.ts', 'console.log(1)'), ['typescript', '1\n'])
  assert.deepEqual(await ran('a.mts', 'const x: number = 2\nconsole.log(x)'), ['typescript', '2\n'])
  assert.deepEqual(await ran('a.cts', 'console.log(require.name)'), ['typescript', 'require\n'])
  assert.deepEqual(await ran('a.cjs', 'console.log(3)'), ['node', '3\n'])
  assert.deepEqual(await ran('b.ts', 'print(4)', '-l', 'py'), ['python', '4\n'])
})

test('what cannot run says why', async () => {
  const missing = await islet(['code', 'dev', '/no/such/file.py'], api)
  assert.equal(missing.exitCode, 125)
  assert.match(missing.stderr, /cannot be read[\s\S]*hint: /)
  const path = `PATH=${sandbox.workdir}`
  const none = await islet(['code', 'dev', '-l', 'bun', '-e', path], { ...api, stdin: '1' })
  assert.equal(none.exitCode, 127)
  assert.match(none.stderr, /has no bun[\s\S]*hint: /)
  assert.equal((await islet(['code', 'dev', '-l', 'cobol'], { ...api, stdin: '1' })).exitCode, 2)
  assert.match((await islet(['code', 'dev'], { ...api, stdin: '' })).stderr, /code is empty/)
})
