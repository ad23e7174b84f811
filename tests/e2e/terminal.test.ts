// The command as a person uses it: in a real terminal, which tmux plays, and as the server says it.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { until } from '../coming-from/until.ts'
import { needs } from '../support/programs.ts'
import { cleanEnv, ISLET, root } from '../support/server.ts'
import { startSuite } from '../support/suite.ts'

needs('curl', 'less', 'tmux', 'vim')

const WAIT_MS = 30_000
const directory = mkdtempSync(join(tmpdir(), 'islet-tmux-'))
const suite = await startSuite()
after(() => rmSync(directory, { recursive: true }))

test('every line that the server prints at its start works as it is printed', async () => {
  const line = (name: string) => new RegExp(`^${name} +(.+)$`, 'm').exec(suite.server.output)?.[1] ?? ''
  await until(() => line('docs') !== '')
  const script = [
    'set -e',
    line('first'),
    line('curl'),
    'echo',
    line('cli'),
    `node --input-type=module -e ${JSON.stringify(`${line('sdk')}; console.log(sandbox.id)`)}`,
    `curl -sf -o /dev/null -w '%{content_type}' ${line('docs')}`,
  ].join('\n')
  const env = { ...cleanEnv(), PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` }
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: root, env })
  const [info = '', hello, id = '', type] = stdout.split('\n')
  assert.equal(JSON.parse(info).engine, 'oci')
  assert.equal(hello, 'hello')
  assert.equal((await suite.islet.sandboxes.get(id)).status, 'running')
  assert.match(type ?? '', /^text\/html/)
  assert.equal(readFileSync(line('key'), 'utf8').trim(), suite.server.key)
  await suite.islet.sandboxes.delete(id)
})

test('a shell in a terminal: size, resize, Ctrl-C, full-screen programs, its exit code', async () => {
  await using sandbox = await suite.create()
  const { ISLET_URL, ISLET_API_KEY } = suite.server.clientEnv
  const env = { ...process.env, ISLET_URL, ISLET_API_KEY, TERM: 'xterm-256color' }
  const tmux = (...args: string[]) =>
    execFileSync('tmux', ['-S', join(directory, 'socket'), ...args], { encoding: 'utf8', env })
  const type = (text: string) => tmux('send-keys', '-t', 'it', text, 'Enter')
  const screen = async (wanted: RegExp) => {
    const end = Date.now() + WAIT_MS
    for (;;) {
      const text = tmux('capture-pane', '-p', '-t', 'it')
      if (wanted.test(text)) return text
      if (Date.now() > end) assert.fail(`waited for ${wanted} on:\n${text}`)
      await sleep(50)
    }
  }
  tmux('-f', '/dev/null', 'new-session', '-d', '-s', 'it', '-x', '90', '-y', '25', '/bin/sh')
  try {
    type(`${process.execPath} ${ISLET} sh ${sandbox.id}; echo left with $?`)
    await screen(/user@sbx-/)
    type('stty size')
    await screen(/^25 90$/m)
    tmux('resize-window', '-t', 'it', '-x', '70', '-y', '20')
    await screen(/\$\s*$/)
    type('clear; stty size')
    await screen(/^20 70$/m)
    type('echo before; sleep 1000')
    await screen(/^before$/m)
    // Until then it is the shell that hears Ctrl-C.
    while ((await sandbox.exec.run(['pgrep', '-x', 'sleep'])).exitCode !== 0) await sleep(50)
    tmux('send-keys', '-t', 'it', 'C-c')
    type('echo still $((40+2))')
    await screen(/^still 42$/m)
    type('top')
    await screen(/Tasks:.*total/)
    tmux('send-keys', '-t', 'it', 'q')
    await screen(/\$\s*$/)
    type('seq 1 1000 | less')
    await screen(/^1$[\s\S]*^19$\n:/m)
    tmux('send-keys', '-t', 'it', 'G')
    await screen(/^1000$\n\(END\)/m)
    tmux('send-keys', '-t', 'it', 'q')
    await screen(/\$\s*$/)
    type('vim -u NONE note.txt')
    await screen(/^~$[\s\S]*note\.txt/m)
    tmux('send-keys', '-t', 'it', 'i', 'first line', 'Enter', 'second', 'Escape')
    await screen(/^first line$\n^second$/m)
    // It is told of a new size while it runs.
    tmux('resize-window', '-t', 'it', '-x', '60', '-y', '15')
    for (let text = ''; !/columns=60[\s\S]*lines=15/.test(text); tmux('send-keys', '-t', 'it', 'Enter')) {
      type(':set columns? lines?')
      text = await screen(/columns=\d+[\s\S]*lines=\d+/)
    }
    type(':wq')
    await screen(/\$\s*$/)
    type('clear; cat note.txt; wc -l < note.txt')
    await screen(/^first line$\n^second$\n^2$/m)
    type('exit 7')
    await screen(/^left with 7$/m)
    // The terminal is as it was: what is typed is echoed and run.
    type('clear; echo home again')
    await screen(/^home again$/m)
    // A command of its own, with the same terminal.
    const loop = 'trap "echo heard" INT; echo begun; while :; do read w && { stty size; exit $w; }; done'
    type(`${process.execPath} ${ISLET} exec -it ${sandbox.id} -- bash -c '${loop}'; echo left with $?`)
    await screen(/^begun$/m)
    tmux('send-keys', '-t', 'it', 'C-c')
    await screen(/heard$/m)
    tmux('resize-window', '-t', 'it', '-x', '66', '-y', '17')
    type('9')
    await screen(/^17 66$[\s\S]*^left with 9$/m)
  } finally {
    tmux('kill-server')
  }
})
