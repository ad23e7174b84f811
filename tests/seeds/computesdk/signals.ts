import assert from 'node:assert/strict'
import { until } from '../../coming-from/until.ts'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function signalPrograms({ sandbox }: World): Programs {
  const { signals } = sandbox
  return {
    'signals are started, have a status and are stopped': async () => {
      assert.equal((await signals.status()).status, 'stopped')
      const started = await signals.start()
      const { status, channel, wsUrl } = await signals.status()
      assert.deepEqual([status, channel], ['active', started.getChannel()])
      assert.match(wsUrl, /^ws:\/\//)
      await signals.stop()
      await until(() => !started.isActive())
      assert.equal((await signals.status()).status, 'stopped')
      const again = await signals.start()
      await again.stop()
      await signals.stop()
    },
    'port signals are emitted and heard': async () => {
      await hears('port', () => signals.emitPort(3000, 'open', 'http://localhost:3000'), {
        signal: 'port',
        port: 3000,
        type: 'open',
        url: 'http://localhost:3000',
      })
      await hears('port', () => signals.emitPort(8080, 'close', 'https://myapp.example.com'), {
        signal: 'port',
        port: 8080,
        type: 'close',
        url: 'https://myapp.example.com',
      })
    },
    'error signals are emitted and heard': async () => {
      for (const message of ['Database connection failed', 'Operation failed: no'])
        await hears('error', () => signals.emitError(message), { signal: 'error', message })
    },
    'server-ready signals are emitted and heard as port signals': async () => {
      for (const port of [3000, 8080]) {
        const url = `http://localhost:${port}`
        await hears('port', () => signals.emitServerReady(port, url), { signal: 'server-ready', port, url })
      }
    },
    'all handlers of an event are called, also beside one that throws': async () => {
      const started = await signals.start()
      const [ports, errors, all]: [unknown[], unknown[], unknown[]] = [[], [], []]
      started.on('port', () => {
        throw new Error('this handler fails, and the others go on')
      })
      started.on('port', ({ port, type }) => void ports.push([port, type]))
      started.on('error', ({ message }) => void errors.push(message))
      started.on('signal', ({ signal }) => void all.push(signal))
      await signals.emitPort(3000, 'open', 'http://localhost:3000')
      await signals.emitError('one')
      await signals.emitServerReady(3000, 'http://localhost:3000')
      await until(() => all.length === 3)
      assert.deepEqual(
        [ports, errors, all],
        [
          [
            [3000, 'open'],
            [3000, undefined],
          ],
          ['one'],
          ['port', 'error', 'server-ready'],
        ],
      )
      await started.stop()
    },
    'a handler that is taken off is not called': async () => {
      const started = await signals.start()
      const [dropped, kept]: [unknown[], unknown[]] = [[], []]
      const handler = (event: unknown) => void dropped.push(event)
      started.on('error', handler)
      started.off('error', handler)
      started.off('error', () => {})
      started.on('error', (event) => void kept.push(event))
      await signals.emitError('one')
      await until(() => kept.length === 1)
      assert.deepEqual(dropped, [])
      await started.stop()
    },
    'a service says its state, and is stopped in finally': async () => {
      const started = await signals.start()
      try {
        assert.deepEqual([started.getStatus(), started.isActive()], ['active', true])
        assert.ok(started.getChannel())
      } finally {
        await started.stop()
      }
      assert.deepEqual([started.getStatus(), started.isActive()], ['stopped', false])
    },
  }

  async function hears(name: 'port' | 'error', emit: () => Promise<void>, wanted: object): Promise<void> {
    const started = await signals.start()
    const seen: unknown[] = []
    started.on(name, (event: unknown) => void seen.push(event))
    await emit()
    await until(() => seen.length > 0)
    assert.deepEqual(seen, [wanted])
    await started.stop()
  }
}
