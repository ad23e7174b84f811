import assert from 'node:assert/strict'
import type { Sandbox } from 'islet'
import { failsWith } from '../../support/shell.ts'
import type { Rows } from '../rows.ts'
import { until } from '../until.ts'

export function sandboxRows(sandbox: Sandbox): Rows {
  const run = (command: string) => sandbox.runCommand(command)
  return {
    'sandbox.runCommand(command, options)': async () => {
      const result = await sandbox.runCommand('pwd; printf "$X" | tr x y; echo e >&2; exit 2', {
        cwd: '/tmp',
        env: { X: 'x' },
        timeout: 30_000,
      })
      assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['/tmp\ny', 'e\n', 2])
      assert.ok(result.durationMs >= 0)
      const started = await sandbox.runCommand('sleep 600', { background: true })
      assert.equal(started.exitCode, 0)
      await sandbox.exec.kill(started.processId)
    },
    'sandbox.runCode(code, language)': async () => {
      const python = await sandbox.runCode('print("Hello from Python")')
      assert.deepEqual(
        [python.output, python.exitCode, python.language],
        ['Hello from Python\n', 0, 'python'],
      )
      assert.equal((await sandbox.runCode('console.log("Hello from Node.js")')).language, 'node')
      const greet = 'def greet(name):\n    return f"Hello, {name}!"\nprint(greet("World"))\n'
      assert.equal((await sandbox.runCode(greet, 'python')).output, 'Hello, World!\n')
      assert.equal((await sandbox.runCode('raise SystemExit(3)', 'python')).exitCode, 3)
      await failsWith(sandbox.runCode('1', 'deno'), 'interpreter_not_found')
    },
    'sandbox.getInfo()': async () => {
      const info = await sandbox.getInfo()
      assert.deepEqual([info.id, info.status, info.metadata], [sandbox.id, 'running', { purpose: 'test' }])
      assert.ok(Date.parse(info.createdAt) > 0)
      assert.deepEqual([info.timeouts.idleMs, info.timeouts.onIdle], [300_000, 'hibernate'])
    },
    'sandbox.getUrl(options)': async () => {
      const url = await sandbox.getUrl({ port: 4000 })
      assert.equal(await sandbox.getUrl({ port: 4000, protocol: 'http' }), url)
      assert.equal((await fetch(url)).status, 502)
      await run('mkdir -p /tmp/site; echo here > /tmp/site/page')
      const http = 'exec python3 -m http.server 4000 --bind 127.0.0.1'
      await sandbox.runCommand(http, { background: true, cwd: '/tmp/site' })
      await until(async () => (await fetch(`${url}/page`)).ok)
      assert.equal(await (await fetch(`${url}/page`)).text(), 'here\n')
      await failsWith(sandbox.getUrl({ port: 4000, protocol: 'https' }), 'not_supported')
    },
  }
}
