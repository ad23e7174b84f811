import assert from 'node:assert/strict'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import { text, type World } from './world.ts'

export function ptyPrograms({ sandbox, islet }: World): Programs {
  const { exec, pty } = sandbox
  return {
    'a terminal has 80 columns and 24 rows, or those that are given, and gives its output': async () => {
      for (const [size, opts] of [
        ['24 80', {}],
        ['30 100', { cols: 100, rows: 30 }],
      ] as const) {
        let screen = ''
        const session = await pty.create({
          ...opts,
          onOutput: (data) => {
            screen += text([data])
          },
        })
        await session.send('stty size\n')
        await until(() => screen.includes(size))
        await session.close()
      }
      await failsWith(pty.create({ cols: 0 }), 'bad_request')
    },
    'a terminal takes text and bytes, and ends when it is closed': async () => {
      let screen = ''
      const session = await pty.create({
        onOutput: (data) => {
          screen += text([data])
        },
      })
      const { sessionId } = session
      session.send('echo $((6 * ')
      session.send(Buffer.from('7))\n'))
      await until(() => /^42/m.test(screen))
      await session.close()
      const shell = await islet.sandboxes
        .connect(sandbox.sandboxId)
        .then((native) => native.exec.get(sessionId))
      assert.equal(shell.terminal, true)
      const ended = await exec.attach(sessionId)
      assert.equal(await ended.done, 128 + 1)
      // Nobody awaits it.
      session.send('too late')
    },
  }
}
