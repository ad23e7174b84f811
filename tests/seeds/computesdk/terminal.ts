import assert from 'node:assert/strict'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function terminalPrograms({ sandbox }: World): Programs {
  const { terminal } = sandbox
  return {
    'a terminal tracks commands unless it is a pty': async () => {
      const exec = await terminal.create()
      assert.deepEqual([exec.pty, exec.channel, exec.status, exec.isRunning()], [false, null, 'ready', true])
      assert.equal(typeof exec.command.run, 'function')
      assert.throws(() => exec.write('ls\n'), { code: 'invalid_state' })
      assert.throws(() => exec.resize(80, 24), { code: 'invalid_state' })
      const pty = await terminal.create({ pty: true })
      assert.deepEqual(
        [pty.pty, typeof pty.channel, pty.status, pty.isRunning()],
        [true, 'string', 'running', true],
      )
      assert.throws(() => pty.command, { code: 'invalid_state' })
      assert.notEqual(pty.id, exec.id)
      await Promise.all([pty.destroy(), exec.destroy()])
      await failsWith(terminal.create({ shell: '/bin/bash' }), 'bad_request')
    },
    'a pty is a shell that is typed into': async () => {
      const pty = await terminal.create({ pty: true, shell: '/bin/bash' })
      let output = ''
      pty.on('output', (data) => {
        output += data
      })
      pty.on('error', (error) => assert.fail(error))
      pty.write('cd /app\n')
      pty.write('echo "in $PWD with $BASH"\n')
      await until(() => output.includes('in /app with /'))
      pty.resize(120, 40)
      pty.write('stty size\n')
      await until(() => output.includes('40 120'))
      await pty.destroy()
    },
    'the output of a pty is text or base64': async () => {
      const pty = await terminal.create({ pty: true, shell: '/bin/sh', encoding: 'base64' })
      let output = ''
      pty.on('output', (data) => {
        output += Buffer.from(data, 'base64')
      })
      pty.write('echo $((6 * 7))\n')
      await until(() => /^42/m.test(output))
      await pty.destroy()
    },
    'handlers are taken off, and a destroyed terminal says so': async () => {
      const pty = await terminal.create({ pty: true, shell: '/bin/sh' })
      const [dropped, kept]: [string[], string[]] = [[], []]
      const handler = (data: string) => void dropped.push(data)
      pty.on('output', handler)
      pty.off('output', handler)
      pty.on('output', (data) => void kept.push(data))
      let isDestroyed = false
      pty.on('destroyed', () => {
        isDestroyed = true
      })
      const before = dropped.length
      pty.write('echo $((6 * 7))\n')
      await until(() => kept.join('').includes('42'))
      assert.equal(dropped.length, before)
      await pty.destroy()
      assert.deepEqual([isDestroyed, pty.isRunning(), pty.status], [true, false, 'stopped'])
      // Nobody awaits it: the shell has ended, and this program goes on.
      pty.write('too late\n')
    },
    'a command in the foreground is complete when it is given': async () => {
      const exec = await terminal.create({ pty: false })
      const command = await exec.command.run('cd /app && npm test; echo warning >&2')
      assert.deepEqual([command.terminalId, command.exitCode, command.status], [exec.id, 0, 'completed'])
      assert.equal(command.command, 'cd /app && npm test; echo warning >&2')
      assert.match(command.stdout, /tests passed/)
      assert.match(command.stderr, /warning/)
      assert.ok(command.id && command.durationMs! > 0 && command.finishedAt! >= command.startedAt)
      const failed = await exec.command.run('exit 3')
      assert.deepEqual([failed.exitCode, failed.status], [3, 'failed'])
      await exec.destroy()
    },
    'a command in the background is waited for and refreshed': async () => {
      const exec = await terminal.create({ pty: false })
      const command = await exec.command.run('cd /app && npm install', { background: true })
      const waiting = await exec.command.run('until [ -e /tmp/go ]; do sleep 0.05; done; echo gone', {
        background: true,
      })
      assert.deepEqual(
        [waiting.status, waiting.exitCode, waiting.finishedAt],
        ['running', undefined, undefined],
      )
      await failsWith(waiting.wait(0.2), 'timeout')
      await sandbox.filesystem.writeFile('/tmp/go', '')
      await waiting.wait(60)
      assert.deepEqual([waiting.status, waiting.exitCode, waiting.stdout], ['completed', 0, 'gone\n'])
      assert.equal((await command.wait(0)).exitCode, 0)
      assert.match(command.stdout, /up to date/)
      const refreshed = await exec.command.run('true', { background: true })
      await until(async () => (await refreshed.refresh()).status === 'completed')
      await exec.destroy()
    },
    'commands are listed and retrieved': async () => {
      const exec = await terminal.create()
      const first = await exec.command.run('echo 1')
      await exec.command.run('echo 2')
      assert.deepEqual(
        (await exec.command.list()).map(({ command, stdout }) => [command, stdout]),
        [
          ['echo 1', '1\n'],
          ['echo 2', '2\n'],
        ],
      )
      assert.equal((await exec.command.retrieve(first.id)).stdout, '1\n')
      await failsWith(exec.command.retrieve('prc-00000000000000000000'), 'process_not_found')
      await exec.destroy()
    },
    'destroying a terminal ends its commands': async () => {
      const exec = await terminal.create()
      await exec.command.run('echo $$ > /tmp/pid; exec sleep 600', { background: true })
      await until(() => sandbox.filesystem.exists('/tmp/pid'))
      const isAlive = async () => (await sandbox.runCommand('kill -0 $(cat /tmp/pid)')).exitCode === 0
      await exec.destroy()
      await until(async () => !(await isAlive()))
      assert.equal(exec.isRunning(), false)
      await failsWith(exec.command.run('true'), 'terminal_not_found')
    },
    'terminals are listed, retrieved and destroyed by their ids': async () => {
      const [pty, exec] = [await terminal.create({ pty: true }), await terminal.create()]
      const known = (await terminal.list()).map(({ id, pty, status, channel }) => ({
        id,
        pty,
        status,
        channel,
      }))
      assert.deepEqual(known, [
        { id: pty.id, pty: true, status: 'running', channel: pty.channel },
        { id: exec.id, pty: false, status: 'ready', channel: null },
      ])
      assert.equal((await terminal.retrieve(pty.id)).channel, pty.channel)
      assert.equal((await terminal.retrieve(exec.id)).pty, false)
      await Promise.all((await terminal.list()).map(({ id }) => terminal.destroy(id)))
      assert.deepEqual(await terminal.list(), [])
      await failsWith(terminal.retrieve(pty.id), 'terminal_not_found')
      await failsWith(terminal.destroy(exec.id), 'terminal_not_found')
    },
  }
}
