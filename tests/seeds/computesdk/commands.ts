import assert from 'node:assert/strict'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function commandPrograms({ sandbox }: World): Programs {
  return {
    'runCommand gives output, exit code and duration, in a directory, with variables': async () => {
      const result = await sandbox.runCommand('pwd; ls -la; printf "$A $B" >&2', {
        cwd: '/app',
        env: { A: 'a', B: 'b' },
      })
      assert.match(result.stdout, /^\/app\n[\s\S]*package\.json/)
      assert.deepEqual(
        [result.stderr, result.exitCode, result.timedOut, result.truncated],
        ['a b', 0, false, false],
      )
      assert.ok(result.durationMs > 0)
    },
    'npm installs in the directory of a package': async () => {
      const { exitCode, stdout } = await sandbox.runCommand('npm install', { cwd: '/app' })
      assert.equal(exitCode, 0)
      assert.match(stdout, /up to date/)
      await failsWith(sandbox.runCommand('npm install', { cwd: '/no/such/place' }), 'cwd_not_found')
    },
    'a server gets its variables': async () => {
      const options = { cwd: '/app', env: { NODE_ENV: 'production', PORT: '3900' }, background: true }
      await sandbox.runCommand('node server.js', options)
      const fetched = `fetch('http://127.0.0.1:3900/').then(async (answer) => process.stdout.write(await answer.text()))`
      const ask = () => sandbox.runCommand(`node -e "${fetched}"`)
      await until(async () => (await ask()).exitCode === 0)
      assert.equal((await ask()).stdout, 'production dev')
    },
    'runCommand leaves a command in the background': async () => {
      const result = await sandbox.runCommand('sleep 0.1; echo done > /tmp/background', { background: true })
      assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, '', ''])
      await until(async () => await sandbox.filesystem.exists('/tmp/background'))
    },
    'a script runs with a directory, variables and a timeout': async () => {
      await sandbox.filesystem.writeFile(
        '/app/scripts/script.py',
        'import os\nprint(os.getcwd(), os.environ["DEBUG"])',
      )
      const result = await sandbox.runCommand('python script.py', {
        cwd: '/app/scripts',
        env: { DEBUG: 'true' },
        timeout: 30_000,
      })
      assert.deepEqual([result.stdout, result.exitCode], ['/app/scripts true\n', 0])
    },
    'runCommand ends a command after its timeout, in milliseconds': async () => {
      const result = await sandbox.runCommand('echo begun; sleep 600', { timeout: 300 })
      assert.deepEqual([result.exitCode, result.timedOut, result.stdout], [124, true, 'begun\n'])
    },
    'a command that fails is a result': async () => {
      await sandbox.filesystem.writeFile('/app/file.txt', 'another word\n')
      const missing = await sandbox.runCommand('grep pattern file.txt', { cwd: '/app' })
      assert.deepEqual([missing.exitCode, missing.stdout], [1, ''])
      const found = await sandbox.runCommand('grep word file.txt', { cwd: '/app' })
      assert.deepEqual([found.exitCode, found.stdout], [0, 'another word\n'])
      const unknown = await sandbox.runCommand('no-such-program')
      assert.equal(unknown.exitCode, 127)
      assert.match(unknown.stderr, /not found/)
    },
    'commands are shell text: operators, pipes and redirects': async () => {
      const both = await sandbox.runCommand('cd /app && npm install && npm test')
      assert.deepEqual([both.exitCode, both.stdout.includes('tests passed')], [0, true])
      await sandbox.filesystem.writeFile('/app/data.txt', 'an error\nfine\nan error\n')
      const count = await sandbox.runCommand('cat data.txt | grep "error" | wc -l', { cwd: '/app' })
      assert.equal(count.stdout.trim(), '2')
      const either = await sandbox.runCommand('false || echo other > /tmp/other; cat < /tmp/other')
      assert.equal(either.stdout, 'other\n')
      await failsWith(sandbox.runCommand('true', { timout: 5 } as object), 'bad_request')
    },
    'runCode detects Python and JavaScript, or takes the language': async () => {
      assert.deepEqual(await sandbox.runCode('print("Hello from Python")'), {
        output: 'Hello from Python\n',
        exitCode: 0,
        language: 'python',
      })
      const script = await sandbox.runCode('console.log("Hello from Node.js")')
      assert.deepEqual([script.output, script.language], ['Hello from Node.js\n', 'node'])
      assert.equal((await sandbox.runCode('console.log("Hello")', 'node')).output, 'Hello\n')
      const lines = ['def double(n):', '    return f"{2 * n} is the double"', '', 'print(double(21))']
      assert.equal((await sandbox.runCode(lines.join('\n'), 'python')).output, '42 is the double\n')
      const failed = await sandbox.runCode('raise SystemExit(3)', 'python')
      assert.equal(failed.exitCode, 3)
      await failsWith(sandbox.runCode('1', 'deno'), 'interpreter_not_found')
    },
  }
}
