import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessInfo, Sandbox, TerminalInstance } from 'islet'
import { until } from '../coming-from/until.ts'
import { assertNoLeak, crashDuring, MOMENTS, withServer } from './crash.ts'

test('terminals and their clients outlive the server', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create({ runtime: 'host' })
    const pty = await sandbox.terminal.create({ pty: true })
    const commands = await sandbox.terminal.create()
    const seen = { text: '' }
    pty.on('output', (data) => {
      seen.text += data
    })
    await pty.write('name=kept\n')
    await until(() => seen.text.includes('name=kept'))
    const command = await commands.command.run('sleep 3; echo late', { background: true })
    const waiting = command.wait()
    await server.kill()
    await server.start()
    assert.equal((await waiting).stdout, 'late\n')
    await sandbox.exec.run('true')
    const [shell] = (await sandbox.exec.list({ status: 'running' })).filter(({ terminal }) => terminal)
    assert.ok(shell!.outputBytes >= seen.text.length, 'what it printed before counts')
    await typeUntil(pty, 'echo "$name and $((40+2))"\n', () => seen.text.includes('kept and 42'))
    const listed = await sandbox.terminal.list()
    assert.deepEqual(
      listed.map(({ id, status }) => [id, status]),
      [
        [pty.id, 'running'],
        [commands.id, 'ready'],
      ],
    )
    assert.equal((await commands.command.run('echo again')).stdout, 'again\n')
    await pty.destroy()
    await commands.destroy()
    assert.deepEqual(await sandbox.terminal.list(), [])
  })
})

test('a crash while a terminal is opened leaves one that was acknowledged, or nothing', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create({ runtime: 'host' })
    for (const moment of MOMENTS) {
      const path = `/v1/sandboxes/${sandbox.id}/terminals`
      const open = async () => (await (await server.post(path, { pty: true })).json()) as { id: string }
      const made = await crashDuring(server, moment, open)
      // An exec waits until what runs in the sandbox is known again.
      await sandbox.exec.run('true')
      if (made) assert.equal((await sandbox.terminal.retrieve(made.id)).status, 'running')
      await until(async () => {
        const terminals = await sandbox.terminal.list()
        const shells = (await sandbox.exec.list({ status: 'running' })).filter(({ terminal }) => terminal)
        const same = shells.every((shell) => terminals.some(({ id }) => id === shell.terminalId))
        return same && shells.length === terminals.length
      })
      for (const { id } of await sandbox.terminal.list()) await sandbox.terminal.destroy(id)
    }
    await assertNoLeak(server)
  })
})

test('what clients left, and what was cancelled, is remembered by the next server', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create({ runtime: 'host' })
    const leaving = await sandbox.exec.start('sleep 600', { maxRunAfterDisconnect: '200ms' })
    const staying = await sandbox.exec.spawn('sleep 600', { maxRunAfterDisconnect: '10m' })
    const script = 'trap "sleep 2; exit 143" TERM; echo set; while :; do sleep 0.05; done'
    const cancelled = await sandbox.exec.spawn(script)
    await until(async () => (await sandbox.exec.get(cancelled.id)).outputBytes > 0)
    await sandbox.exec.kill(cancelled.id, 'SIGTERM')
    leaving.close()
    await server.kill()
    await server.start()
    assert.equal((await ended(sandbox, leaving.processId)).jobStatus, 'cancelled')
    assert.equal((await ended(sandbox, cancelled.id)).jobStatus, 'cancelled')
    assert.equal((await sandbox.exec.get(staying.id)).jobStatus, 'running')
  })
})

async function ended(sandbox: Sandbox, processId: string): Promise<ProcessInfo> {
  await until(async () => (await sandbox.exec.get(processId)).status !== 'running')
  return sandbox.exec.get(processId)
}

/** Input that crosses a broken connection may be lost, as with any terminal: it is typed again. */
async function typeUntil(pty: TerminalInstance, text: string, isSo: () => boolean): Promise<void> {
  await until(async () => {
    await pty.write(text)
    for (let waited = 0; waited < 40 && !isSo(); waited++) await sleep(50)
    return isSo()
  })
}
