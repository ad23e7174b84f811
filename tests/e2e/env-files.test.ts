import assert from 'node:assert/strict'
import { test } from 'node:test'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const sandbox = await suite.create()

test('a shell reads what was written', async () => {
  const values = [
    'plain',
    'two words',
    '$HOME `id` \\ "quoted" #',
    "it's",
    `it's "$5" \\ \`x\``,
    'a\nb\n',
    "a\n'b'\n",
    '  spaces  ',
    'tab\there',
    '~/x *?[a] {b,c} !d &;|<>()',
    'ünï©ode 日本',
    '',
    '#',
    "'",
    '"',
    '\\',
    '\\n',
    `trailing '\\`,
    // Not one whose last line looks like the beginning of another value: that is written for readers of .env files, not for shells.
    ...Array.from({ length: 40 }, () => `${randomText(`'"\`$\\# \nabc=`, 12)}c`),
  ]
  const variables = Object.fromEntries(values.map((value, index) => [`V${index}`, value]))
  await sandbox.files.write('shell.env', '# mine\nexport KEPT=1\n')
  await sandbox.env.update('shell.env', variables)
  assert.deepEqual(await sandbox.env.retrieve('shell.env'), { KEPT: '1', ...variables })
  const names = values.map((_, index) => `"$V${index}"`).join(' ')
  const { stdout, exitCode, stderr } = await sandbox.exec.run(
    `set -a; . ./shell.env; printf '%s\\1' ${names}`,
  )
  assert.equal(exitCode, 0, stderr)
  assert.deepEqual(stdout.split('\u0001').slice(0, -1), values)
})

test('fifty updates at once all arrive, and the file is of the sandbox user alone', async () => {
  const updates = Array.from({ length: 50 }, (_, index) =>
    sandbox.env.update('.env', { [`KEY_${index}`]: `value ${index}`, LAST: String(index) }),
  )
  await Promise.all(updates)
  const variables = await sandbox.env.retrieve('.env')
  for (let index = 0; index < 50; index++) assert.equal(variables[`KEY_${index}`], `value ${index}`)
  assert.equal(Object.keys(variables).length, 51)
  assert.equal(await say(sandbox, 'stat -c "%a %u" .env'), `600 ${await say(sandbox, 'id -u')}`)
})

test('what exists says nothing but true or false', async () => {
  await say(
    sandbox,
    'mkdir -p folder.env && ln -sf loop loop && mkfifo -m 600 pipe && ln -sf .env linked.env',
  )
  assert.equal(await sandbox.env.exists('linked.env'), true)
  const odd = [
    'none',
    'folder.env',
    'pipe',
    'loop',
    '.env/x',
    '',
    'x'.repeat(300),
    '\0',
    `/${'y/'.repeat(3000)}`,
  ]
  for (const file of odd)
    assert.equal(await sandbox.env.exists(file), false, JSON.stringify(file.slice(0, 20)))
  assert.equal(await sandbox.files.exists('loop'), true, 'a link that leads nowhere is there')
  for (const path of odd.filter((name) => !['folder.env', 'pipe', 'loop'].includes(name)))
    assert.equal(await sandbox.files.exists(path), false, JSON.stringify(path.slice(0, 20)))
})

function randomText(characters: string, length: number): string {
  return Array.from({ length }, () => characters[Math.floor(Math.random() * characters.length)]).join('')
}
