// Code in a sandbox with users and a root of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode, type Sandbox } from 'islet'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()

test('code runs as the user of the sandbox, from a file that is its own and gone afterwards', async () => {
  await using sandbox = await suite.create()
  const { workdir, user } = await sandbox.getInfo()
  const code = [
    'import os, stat, pwd',
    'info = os.stat(__file__)',
    'print(os.path.dirname(__file__), pwd.getpwuid(info.st_uid).pw_name, oct(stat.S_IMODE(info.st_mode)))',
  ].join('\n')
  const result = await sandbox.runCode(code)
  assert.deepEqual([result.language, result.output], ['python', `${workdir} ${user} 0o600\n`])
  const asRoot = await sandbox.runCode('id -un', { user: 'root' })
  assert.deepEqual([asRoot.output, asRoot.language], ['root\n', 'shell'])
  if (await hasNode(sandbox)) {
    assert.equal((await sandbox.runCode('console.log(await 1 + 1)', 'node')).output, '2\n')
  }
  assert.equal((await sandbox.runCommand('ls -A | grep -c islet')).stdout, '0\n')
})

test('code whose working directory is not its own runs there from /tmp and finds what is there', async () => {
  await using sandbox = await suite.create()
  await sandbox.exec.run(
    'mkdir -p /srv/app/node_modules/m && echo "value = 7" > /srv/app/helper.py && echo "module.exports = 8" > /srv/app/node_modules/m/index.js',
    { user: 'root' },
  )
  const python = await sandbox.runCode(
    'import os, helper\nprint(os.getcwd(), os.path.dirname(__file__), helper.value)',
    {
      cwd: '/srv/app',
    },
  )
  assert.equal(python.output, '/srv/app /tmp 7\n')
  if (await hasNode(sandbox)) {
    const code = "console.log(process.cwd(), require('m'))"
    const node = await sandbox.runCode(code, 'node', { cwd: '/srv/app' })
    assert.equal(node.output, '/srv/app 8\n')
  }
  const left = await sandbox.runCommand('ls -A /tmp /srv/app | grep -c islet-')
  assert.equal(left.stdout, '0\n')
})

test('a language that the runtime does not have is named', async () => {
  await using sandbox = await suite.create({ env: { PATH: '/usr/bin:/bin' } })
  await assert.rejects(sandbox.runCode('Bun.version'), (error) => {
    assert.match((error as Error).message, /bun/)
    return hasCode(error, 'interpreter_not_found')
  })
})

/** The host's own programs are what these sandboxes have; Node may be elsewhere than in /usr. */
async function hasNode(sandbox: Sandbox): Promise<boolean> {
  return (await sandbox.runCommand('command -v node')).exitCode === 0
}
