import assert from 'node:assert/strict'
import type { Sandbox } from 'islet'
import { failsWith } from '../../support/shell.ts'
import type { Rows } from '../rows.ts'
import { until } from '../until.ts'

export function terminalRows(sandbox: Sandbox): Rows {
  const { files, terminal } = sandbox
  return {
    'terminal.create({ pty: true })': async () => {
      const pty = await terminal.create({ pty: true, shell: '/bin/sh' })
      assert.deepEqual([pty.pty, pty.status, typeof pty.channel], [true, 'running', 'string'])
      await pty.destroy()
    },
    'terminal.create({ pty: false })': async () => {
      const exec = await terminal.create()
      assert.deepEqual([exec.pty, exec.channel], [false, null])
      await exec.destroy()
    },
    'terminal.list()': async () => {
      const opened = await terminal.create()
      assert.deepEqual(
        (await terminal.list()).map(({ id, pty }) => [id, pty]),
        [[opened.id, false]],
      )
      await opened.destroy()
      assert.deepEqual(await terminal.list(), [])
    },
    'terminal.retrieve(id)': async () => {
      const opened = await terminal.create({ pty: true })
      assert.equal((await terminal.retrieve(opened.id)).status, 'running')
      await opened.destroy()
      await failsWith(terminal.retrieve(opened.id), 'terminal_not_found')
    },
    'terminal.destroy(id)': async () => {
      const opened = await terminal.create({ pty: true })
      await terminal.destroy(opened.id)
      await failsWith(terminal.destroy(opened.id), 'terminal_not_found')
    },
    'instance.write(input)': async () => {
      const pty = await terminal.create({ pty: true, shell: '/bin/sh' })
      let output = ''
      pty.on('output', (data) => {
        output += data
      })
      pty.write('echo $((6 * 7))\n')
      // The prompt may come between the input and the result, on the same line.
      await until(() => output.includes('42'))
      await pty.destroy()
    },
    'instance.resize(cols, rows)': async () => {
      const pty = await terminal.create({ pty: true, shell: '/bin/sh', encoding: 'base64' })
      let output = ''
      pty.on('output', (data) => {
        output += Buffer.from(String(data), 'base64')
      })
      pty.resize(120, 40)
      await until(() => {
        pty.write('stty size\n')
        return output.includes('40 120')
      })
      await pty.destroy()
    },
    'instance.on(event, handler)': async () => {
      const pty = await terminal.create({ pty: true })
      let isDestroyed = false
      pty.on('destroyed', () => {
        isDestroyed = true
      })
      await terminal.destroy(pty.id)
      await until(() => isDestroyed)
    },
    'instance.off(event, handler)': async () => {
      const pty = await terminal.create({ pty: true, shell: '/bin/sh' })
      let [dropped, kept] = ['', '']
      const handler = (data: string) => {
        dropped += data
      }
      pty.on('output', handler)
      pty.off('output', handler)
      pty.on('output', (data) => {
        kept += data
      })
      pty.write('echo $((6 * 7))\n')
      await until(() => kept.includes('42'))
      assert.ok(!dropped.includes('42'))
      await pty.destroy()
    },
    'instance.destroy()': async () => {
      const exec = await terminal.create()
      const command = await exec.command.run('sleep 600', { background: true })
      await exec.destroy()
      await until(async () => (await sandbox.exec.get(command.id)).status !== 'running')
    },
    'instance.isRunning()': async () => {
      const pty = await terminal.create({ pty: true })
      assert.equal(pty.isRunning(), true)
      await pty.destroy()
      assert.equal(pty.isRunning(), false)
    },
    'instance.command.run(command, options)': async () => {
      const exec = await terminal.create()
      const command = await exec.command.run('echo out; echo err >&2')
      const { terminalId, status, stdout, stderr, exitCode } = command
      assert.deepEqual(
        [terminalId, status, stdout, stderr, exitCode],
        [exec.id, 'completed', 'out\n', 'err\n', 0],
      )
      assert.ok(command.durationMs! >= 0 && command.finishedAt! >= command.startedAt)
      assert.equal((await exec.command.run('exit 3')).status, 'failed')
      await exec.destroy()
    },
    'instance.command.list()': async () => {
      const exec = await terminal.create()
      for (const text of ['echo 1', 'echo 2']) await exec.command.run(text)
      assert.deepEqual(
        (await exec.command.list()).map(({ command }) => command),
        ['echo 1', 'echo 2'],
      )
      await exec.destroy()
    },
    'instance.command.retrieve(cmdId)': async () => {
      const exec = await terminal.create()
      const { id } = await exec.command.run('echo 1')
      assert.equal((await exec.command.retrieve(id)).stdout, '1\n')
      await exec.destroy()
    },
    'command.wait(timeout)': async () => {
      const exec = await terminal.create()
      const command = await exec.command.run('while [ ! -e /tmp/go ]; do sleep 0.05; done; echo gone', {
        background: true,
      })
      assert.deepEqual(
        [command.status, command.exitCode, command.finishedAt],
        ['running', undefined, undefined],
      )
      await failsWith(command.wait(0.2), 'timeout')
      await files.write('/tmp/go', '')
      await command.wait(60)
      assert.deepEqual([command.status, command.exitCode, command.stdout], ['completed', 0, 'gone\n'])
      await exec.destroy()
    },
    'command.refresh()': async () => {
      const exec = await terminal.create()
      const command = await exec.command.run('true', { background: true })
      await until(async () => (await command.refresh()).status === 'completed')
      await exec.destroy()
    },
  }
}
