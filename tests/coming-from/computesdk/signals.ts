import assert from 'node:assert/strict'
import type { Sandbox, SignalEvent } from 'islet'
import type { Rows } from '../rows.ts'
import { until } from '../until.ts'

export function signalRows(sandbox: Sandbox): Rows {
  const { signals } = sandbox
  const run = (command: string) => sandbox.runCommand(command)
  return {
    'signals.start()': async () => {
      const started = await signals.start()
      assert.equal(started.isActive(), true)
      await started.stop()
    },
    'signals.status()': async () => {
      assert.equal((await signals.status()).status, 'stopped')
      const started = await signals.start()
      const { status, channel, wsUrl } = await signals.status()
      assert.deepEqual([status, channel], ['active', started.getChannel()])
      assert.match(wsUrl, /^ws:/)
      await started.stop()
    },
    'signals.stop()': async () => {
      const started = await signals.start()
      await signals.stop()
      await until(() => !started.isActive())
    },
    'signals.emitPort(port, type, url)': async () => {
      await hears('port', () => signals.emitPort(3000, 'open', 'http://localhost:3000'), {
        signal: 'port',
        port: 3000,
        type: 'open',
        url: 'http://localhost:3000',
      })
    },
    'signals.emitError(message)': async () => {
      const message = 'Database connection failed'
      await hears('error', () => signals.emitError(message), { signal: 'error', message })
    },
    'signals.emitServerReady(port, url)': async () => {
      await hears('port', () => signals.emitServerReady(8080, 'http://localhost:8080'), {
        signal: 'server-ready',
        port: 8080,
        url: 'http://localhost:8080',
      })
    },
    'signalService.on(event, handler)': async () => {
      const started = await signals.start()
      const seen: SignalEvent[] = []
      started.on('signal', () => {
        throw new Error('this handler fails, and the others go on')
      })
      started.on('signal', (event) => void seen.push(event))
      await sandbox.runCommand('exec python3 -m http.server 5000 --bind 127.0.0.1', { background: true })
      await until(() => seen.some((event) => 'port' in event && event.port === 5000))
      await run('islet-signal error from inside')
      await until(() => seen.some((event) => 'message' in event && event.message === 'from inside'))
      await started.stop()
    },
    'signalService.off(event, handler)': async () => {
      const started = await signals.start()
      const [dropped, kept]: [unknown[], unknown[]] = [[], []]
      const handler = (event: unknown) => void dropped.push(event)
      started.on('error', handler)
      started.off('error', handler)
      started.on('error', (event) => void kept.push(event))
      await signals.emitError('x')
      await until(() => kept.length === 1)
      assert.deepEqual(dropped, [])
      await started.stop()
    },
    'signalService.stop()': async () => {
      const started = await signals.start()
      await started.stop()
      assert.equal((await signals.status()).status, 'stopped')
    },
    'signalService.getStatus()': async () => {
      const started = await signals.start()
      assert.deepEqual([started.getStatus(), started.isActive()], ['active', true])
      assert.ok(started.getChannel().includes(sandbox.id))
      await started.stop()
      assert.deepEqual([started.getStatus(), started.isActive()], ['stopped', false])
    },
  }

  async function hears(
    name: 'port' | 'error',
    emit: () => Promise<void>,
    wanted: SignalEvent,
  ): Promise<void> {
    const started = await signals.start()
    const seen: unknown[] = []
    started.on(name, (event: unknown) => void seen.push(event))
    await emit()
    await until(() => seen.length > 0)
    assert.deepEqual(seen, [wanted])
    await started.stop()
  }
}
