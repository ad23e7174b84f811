import assert from 'node:assert/strict'
import { Sandbox } from 'islet/opencomputer'
import { until } from '../../coming-from/until.ts'
import { relayTo } from '../relay.ts'
import type { Programs } from '../seeds.ts'
import { text, type World } from './world.ts'

export function execPrograms({ sandbox, server }: World): Programs {
  const { exec } = sandbox
  return {
    'exec.run gives output and exit code, with variables and a directory': async () => {
      const result = await exec.run('pwd; printf "$X"; echo oops >&2; exit 3', {
        cwd: '/tmp',
        env: { X: 'y' },
      })
      assert.deepEqual(result, {
        exitCode: 3,
        stdout: '/tmp\ny',
        stderr: 'oops\n',
        timedOut: false,
        truncated: false,
      })
      const long = await exec.run('head -c 9000000 /dev/zero | tr "\\0" x')
      assert.deepEqual([long.stdout.length, long.truncated], [9_000_000, false])
      await assert.rejects(exec.run('true', { cwd: '/nothing/here' }), {
        message: /^Failed to run command: 422 /,
        code: 'cwd_not_found',
      })
    },
    'exec.run kills the command after 60 seconds, or those that are given': async () => {
      const relay = await relayTo(server.url)
      const there = await Sandbox.connect(sandbox.sandboxId, { apiUrl: relay.url })
      await there.exec.run('true')
      assert.equal(relay.sent('/exec')[0]?.timeout, 60_000)
      const slow = await there.exec.run('echo begun; sleep 600', { timeout: 0.5 })
      assert.deepEqual([slow.timedOut, slow.exitCode, slow.stdout], [true, 124, 'begun\n'])
    },
    'exec.start runs a program with arguments, variables and a directory, and gives its output as it comes':
      async () => {
        const [out, err]: [Uint8Array[], Uint8Array[]] = [[], []]
        let exit: number | undefined
        const session = await exec.start('sh', {
          args: ['-c', 'echo "$0 $X" in $PWD; echo bad >&2; exit 4', 'arg'],
          env: { X: 'x' },
          cwd: '/tmp',
          onStdout: (data) => void out.push(data),
          onStderr: (data) => void err.push(data),
          onExit: (code) => {
            exit = code
          },
        })
        assert.equal(await session.done, 4)
        assert.deepEqual([text(out), text(err), exit], ['arg x in /tmp\n', 'bad\n', 4])
        const shell: Uint8Array[] = []
        const plain = await exec.start('echo $((6 * 7)) | cat', {
          args: [],
          onStdout: (data) => void shell.push(data),
        })
        assert.deepEqual([await plain.done, text(shell)], [0, '42\n'])
      },
    'exec.start ends a command after its timeout, or some seconds after its client has left': async () => {
      assert.equal(await (await exec.start('sleep 600', { timeout: 0.2 })).done, 124)
      const left = await exec.start('sleep 600', { maxRunAfterDisconnect: 0.2 })
      left.close()
      const kept = await exec.start('sleep 600', { maxRunAfterDisconnect: 0 })
      kept.close()
      const isRunning = async (id: string) =>
        (await exec.list()).find(({ sessionID }) => sessionID === id)!.running
      await until(async () => !(await isRunning(left.sessionId)))
      assert.equal(await isRunning(kept.sessionId), true)
      await exec.kill(kept.sessionId)
    },
    'exec.attach gives what was printed before, then what comes': async () => {
      const printed = Promise.withResolvers<void>()
      const first = await exec.start('echo before; echo also >&2; cat; exit 2', {
        onStderr: () => printed.resolve(),
      })
      await printed.promise
      const [seen, errors]: [string[], string[]] = [[], []]
      const again = await exec.attach(first.sessionId, {
        onStdout: (data) => void seen.push(text([data])),
        onStderr: (data) => void errors.push(text([data])),
        onScrollbackEnd: () => void seen.push('(live)'),
        onExit: (code) => void seen.push(`(${code})`),
      })
      await again.sendStdin('after\n')
      await until(() => seen.includes('after\n'))
      await again.kill(15)
      assert.equal(await again.done, 128 + 15)
      assert.deepEqual([seen.join(''), errors.join('')], ['before\n(live)after\n(143)', 'also\n'])
      await assert.rejects(exec.attach('prc-00000000000000000000'), {
        message: /^WebSocket connection failed: 404 process not found/,
      })
    },
    'exec sessions are listed, and killed by signal 9 or another': async () => {
      const session = await exec.start('sleep', { args: ['600'] })
      const find = async () => (await exec.list()).find(({ sessionID }) => sessionID === session.sessionId)
      const { startedAt, ...info } = (await find())!
      assert.ok(Date.parse(startedAt) > 0)
      assert.deepEqual(info, {
        sessionID: session.sessionId,
        sandboxID: sandbox.sandboxId,
        command: 'sleep',
        args: ['600'],
        running: true,
      })
      await exec.kill(session.sessionId)
      assert.equal(await session.done, 128 + 9)
      assert.deepEqual([(await find())?.running, (await find())?.exitCode], [false, 128 + 9])
      const other = await exec.start('sleep 600')
      await exec.kill(other.sessionId, 15)
      assert.equal(await other.done, 128 + 15)
      await assert.rejects(exec.kill('prc-00000000000000000000'), {
        message: /^Failed to kill exec session: 404 process not found/,
      })
    },
    'a session takes text and bytes on stdin, is killed, and is closed without ending the command':
      async () => {
        const out: Uint8Array[] = []
        const session = await exec.start('head -n 2', { onStdout: (data) => void out.push(data) })
        session.sendStdin('text and ')
        session.sendStdin(Buffer.from('bytes\nmore\n'))
        assert.equal(await session.done, 0)
        assert.equal(text(out), 'text and bytes\nmore\n')
        // Nobody awaits it: the process has ended, and this program goes on.
        session.sendStdin('too late\n')
        const killed = await exec.start('sleep 600')
        await killed.kill()
        assert.equal(await killed.done, 128 + 9)
        let exit: number | undefined
        const closed = await exec.start('sleep 600', {
          onExit: (code) => {
            exit = code
          },
        })
        closed.close()
        assert.deepEqual([await closed.done, exit], [-1, -1])
        const info = (await exec.list()).find(({ sessionID }) => sessionID === closed.sessionId)
        assert.equal(info?.running, true)
        await exec.kill(closed.sessionId)
      },
  }
}
