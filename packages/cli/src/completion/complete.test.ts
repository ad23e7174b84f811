import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { createProgram } from '../app.ts'
import { complete } from './complete.ts'
import { SCRIPTS } from './scripts.ts'

// The names that a server would give. test/main.test.ts completes names of a real server.
const none = async () => []
const names = {
  sandbox: none,
  process: none,
  service: none,
  checkpoint: none,
  snapshot: async () => [{ text: 'v1', summary: '' }],
  runtime: async () => ['base', 'host'].map((text) => ({ text, summary: '' })),
  project: async () =>
    ['ok.1', 'a:b@c/d-e', '$(id)', '`id`', 'a b', 'a;id', "a'b", '-rf', '*', 'a\nb'].map((text) => ({
      text,
      summary: '',
    })),
}

async function suggest(...words: string[]): Promise<string[] | undefined> {
  return (await complete(createProgram(), words, names))?.map(({ text }) => text)
}

test('commands and their subcommands are completed', async () => {
  assert.deepEqual(await suggest('i'), ['info', 'image'])
  assert.deepEqual(await suggest('image', 'p'), ['pull'])
  assert.ok(!(await suggest(''))?.includes('__complete'))
})

test('options and their choices are completed', async () => {
  assert.deepEqual(await suggest('ls', '--st'), ['--status'])
  assert.deepEqual(await suggest('ls', '--status', 'ru'), ['running'])
  assert.deepEqual(await suggest('completion', ''), ['bash', 'zsh', 'fish', 'install', 'uninstall'])
  assert.deepEqual(await suggest('completion', 'install', 'z'), ['zsh'])
  assert.deepEqual(await suggest('timeout', 'dev', '--on-idle', ''), ['hibernate', 'kill'])
  assert.deepEqual(await suggest('create', '--idle'), ['--idle-timeout'])
})

test('values of options come from the server, however the shell splits the words', async () => {
  assert.deepEqual(await suggest('create', '--runtime', ''), ['base', 'host'])
  assert.deepEqual(await suggest('run', '-r', 'h'), ['host'])
  assert.deepEqual(await suggest('create', '--snapshot', ''), ['v1'])
  assert.deepEqual(await suggest('create', '--runtime=h'), ['--runtime=host'])
  assert.deepEqual(await suggest('create', '--runtime', '='), ['base', 'host'])
  assert.deepEqual(await suggest('create', '--runtime', '=', 'b'), ['base'])
})

test('a name that a shell would not take as one plain word is left out', async () => {
  assert.deepEqual(await suggest('ls', '--project', ''), ['ok.1', 'a:b@c/d-e'])
})

test('the shell completes local files itself', async () => {
  assert.equal(await suggest('exec', 'dev', '--', 'l'), undefined)
  assert.equal(await suggest('run', '--env-file', ''), undefined)
  assert.equal(await suggest('cp', ''), undefined)
  assert.equal(await suggest('snapshot', 'import', ''), undefined)
})

test('the bash script is valid and passes the words on', () => {
  const script = `islet() { printf '%s/' "$@"; printf '\\nother\tsummary\\n/*\\n$(id)\tsummary\\n'; }
${SCRIPTS.bash}
COMP_WORDS=(islet exec d); COMP_CWORD=2; _islet; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
  assert.equal(stdout, '__complete/--/exec/d/\nother\n/\\*\n\\$\\(id\\)\n', stderr)
})
