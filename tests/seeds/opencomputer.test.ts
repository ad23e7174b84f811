// The document of the OpenComputer SDK: every method, option, default and result, through `islet/opencomputer`.
import assert from 'node:assert/strict'
import { Sandbox, type SandboxOpts } from 'islet/opencomputer'
import { until } from '../coming-from/until.ts'
import { failsWith } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'
import { relayTo } from './relay.ts'
import { testSeed } from './seeds.ts'

const { server, islet } = await startSuite()
process.env.ISLET_URL = server.url
process.env.ISLET_API_KEY = server.key
process.env.OPENCOMPUTER_API_URL = 'http://127.0.0.1:9'
process.env.OPENCOMPUTER_API_KEY = 'a key of somebody else'

const sandbox = await Sandbox.create({ template: 'host', envs: { GREETING: 'hello' } })
const { exec, files, pty } = sandbox
await files.write('base', 'base\n')
const base = await sandbox.createCheckpoint('base')
const given = { apiKey: server.key, apiUrl: `${server.url}/` }
const recordOf = ({ sandboxId }: Sandbox) => islet.sandboxes.get(sandboxId)
const text = (bytes: Uint8Array[]) => Buffer.concat(bytes).toString()

testSeed('opencomputer/sandbox', {
  'without options a sandbox runs base, with 300 seconds of idle time, at the server of the environment':
    async () => {
      const made = await Sandbox.create()
      const { runtime, timeouts, network } = await recordOf(made)
      assert.deepEqual([runtime, timeouts.idleMs, network.enabled], ['base', 300_000, true])
      await made.kill()
    },
  'a sandbox is created with a template, variables, metadata and limits, by the key and URL that are given':
    async () => {
      const opts: SandboxOpts = {
        ...given,
        template: 'host',
        timeout: 600,
        envs: { STAGE: 'test' },
        metadata: { team: 'blue' },
        cpuCount: 1,
        memoryMB: 512,
        network: false,
      }
      const made = await Sandbox.create(opts)
      const { runtime, timeouts, metadata, resources, network } = await recordOf(made)
      assert.deepEqual([runtime, timeouts.idleMs, metadata], ['host', 600_000, { team: 'blue' }])
      assert.deepEqual([resources.cpuMillis, resources.memoryBytes], [1000, 512 * 1024 * 1024])
      assert.equal(network.enabled, false)
      assert.equal((await made.exec.run('printf "$STAGE"')).stdout, 'test')
      await made.kill()
      await assert.rejects(Sandbox.create({ ...given, apiKey: 'wrong' }), {
        message: /^Failed to create sandbox: 401 /,
        code: 'unauthorized',
      })
      await assert.rejects(Sandbox.create({ template: 'no-such-template' }), {
        message: /^Failed to create sandbox: 404 runtime not found/,
        code: 'runtime_not_found',
      })
    },
  'more than 4 CPUs or 2048 MB are refused': async () => {
    await failsWith(Sandbox.create({ cpuCount: 5 }), 'limit_too_high')
    await failsWith(Sandbox.create({ memoryMB: 2049 }), 'limit_too_high')
    await failsWith(Sandbox.create({ memoryMB: -1 }), 'bad_request')
    await failsWith(Sandbox.create({ timeout: Number.NaN }), 'bad_request')
    await failsWith(Sandbox.create({ timout: 1 } as SandboxOpts), 'bad_request')
    const made = await Sandbox.create({ template: 'host', memoryMB: 2048 })
    assert.equal((await recordOf(made)).resources.memoryBytes, 2048 * 1024 * 1024)
    await made.kill()
  },
  'connect gives another handle of a sandbox': async () => {
    for (const opts of [undefined, given]) {
      const again = await Sandbox.connect(sandbox.sandboxId, opts)
      assert.equal((await again.exec.run('printf "$GREETING"')).stdout, 'hello')
    }
    const id = 'sbx-00000000000000000000'
    await assert.rejects(Sandbox.connect(id), {
      message: new RegExp(`^Failed to connect to sandbox ${id}: 404 sandbox not found`),
      code: 'sandbox_not_found',
    })
  },
  'a sandbox is created from a checkpoint, with an idle timeout of 300 seconds': async () => {
    const made = await Sandbox.createFromCheckpoint(base.id, {
      ...given,
      timeout: 60,
      envs: { MORE: 'more' },
    })
    assert.equal((await made.exec.run('printf "$GREETING $MORE "; cat base')).stdout, 'hello more base\n')
    assert.equal((await recordOf(made)).timeouts.idleMs, 60_000)
    const { id } = await made.createCheckpoint('of a sandbox with 60 seconds')
    await made.kill()
    const another = await Sandbox.createFromCheckpoint(id)
    assert.equal((await recordOf(another)).timeouts.idleMs, 300_000)
    await another.kill()
    await assert.rejects(Sandbox.createFromCheckpoint('ckp-00000000000000000000'), {
      message: /^Failed to create sandbox from checkpoint: 404 checkpoint not found/,
    })
  },
  'patches of a checkpoint are created, listed and deleted, and run in sandboxes made from it': async () => {
    const { patch } = await Sandbox.createCheckpointPatch(base.id, {
      ...given,
      script: 'echo patched >> base',
      description: 'adds a line',
    })
    const { id, sequence, createdAt, ...rest } = patch
    assert.deepEqual(rest, {
      checkpointId: base.id,
      script: 'echo patched >> base',
      description: 'adds a line',
      strategy: 'on_wake',
    })
    assert.ok(id && sequence === 1 && Date.parse(createdAt) > 0)
    const made = await Sandbox.createFromCheckpoint(base.id)
    assert.equal(await made.files.read('base'), 'base\npatched\n')
    const second = await Sandbox.createCheckpointPatch(base.id, { script: 'echo again >> base' })
    assert.equal(second.patch.description, '')
    assert.deepEqual(await Sandbox.listCheckpointPatches(base.id, given), [patch, second.patch])
    await made.hibernate()
    await made.wake()
    assert.equal(await made.files.read('base'), 'base\npatched\nagain\n')
    await made.kill()
    await Sandbox.deleteCheckpointPatch(base.id, id, given)
    await Sandbox.deleteCheckpointPatch(base.id, id)
    await Sandbox.deleteCheckpointPatch(base.id, second.patch.id)
    assert.deepEqual(await Sandbox.listCheckpointPatches(base.id), [])
    await failsWith(Sandbox.createCheckpointPatch(base.id, { script: '' }), 'bad_request')
  },
  'a killed sandbox is stopped and does not run': async () => {
    const made = await Sandbox.create({ template: 'host' })
    assert.equal(await made.isRunning(), true)
    await made.kill()
    await made.kill()
    assert.deepEqual([made.status, await made.isRunning()], ['stopped', false])
  },
  'a hibernated sandbox wakes, with 300 seconds of idle time or those that are given': async () => {
    const made = await Sandbox.create({ template: 'host', timeout: 900 })
    const session = await made.exec.start('sleep 600')
    await made.hibernate()
    assert.deepEqual([made.status, await made.isRunning()], ['hibernated', false])
    await made.wake()
    assert.deepEqual([made.status, (await recordOf(made)).timeouts.idleMs], ['running', 300_000])
    assert.equal(
      (await made.exec.list()).find(({ sessionID }) => sessionID === session.sessionId)?.running,
      true,
    )
    await made.hibernate()
    await made.wake({ timeout: 120 })
    assert.equal((await recordOf(made)).timeouts.idleMs, 120_000)
    await made.kill()
    await assert.rejects(made.wake(), { message: /^Failed to wake sandbox: 4\d\d / })
  },
  'setTimeout changes the idle timeout, in seconds': async () => {
    const made = await Sandbox.create({ template: 'host' })
    await made.setTimeout(900)
    assert.equal((await recordOf(made)).timeouts.idleMs, 900_000)
    await made.setTimeout(0)
    assert.equal((await recordOf(made)).timeouts.idleMs, 0)
    await failsWith(made.setTimeout(-1), 'bad_request')
    await made.setTimeout(1)
    await until(async () => !(await made.isRunning()))
    assert.equal(made.status, 'hibernated')
    await made.kill()
  },
  'checkpoints are created, listed, restored in place and deleted': async () => {
    const made = await Sandbox.createFromCheckpoint(base.id)
    const checkpoint = await made.createCheckpoint('before')
    const { id, sandboxId, name, status } = checkpoint
    assert.deepEqual([sandboxId, name, status], [made.sandboxId, 'before', 'ready'])
    assert.ok(Date.parse(checkpoint.createdAt) > 0 && checkpoint.sizeBytes !== undefined)
    await made.files.write('base', 'changed')
    await made.files.write('new', '')
    await made.restoreCheckpoint(id)
    assert.deepEqual([await made.files.read('base'), await made.files.exists('new')], ['base\n', false])
    await made.createCheckpoint('after')
    assert.deepEqual(
      (await made.listCheckpoints()).map(({ name }) => name),
      ['after', 'before'],
    )
    await assert.rejects(made.createCheckpoint('after'), {
      message: /^Failed to create checkpoint: 409 /,
      code: 'conflict',
    })
    await made.deleteCheckpoint(id)
    await made.deleteCheckpoint(id)
    assert.equal((await made.listCheckpoints()).length, 1)
    await assert.rejects(made.restoreCheckpoint(id), { message: /404 checkpoint not found/ })
    await made.kill()
  },
  'preview URLs lead to a port, ask for a token if they are told to, are listed and deleted': async () => {
    await exec.start('exec python3 -m http.server 8000 --bind 127.0.0.1', { cwd: '/tmp' })
    const open = await sandbox.createPreviewURL({ port: 8000 })
    assert.deepEqual([open.sandboxId, open.port, open.authConfig], [sandbox.sandboxId, 8000, {}])
    assert.equal(`http://${open.hostname}`, open.url)
    assert.deepEqual([open.sslStatus, open.token, Date.parse(open.createdAt) > 0], ['none', undefined, true])
    await until(async () => (await fetch(open.url)).status === 200)
    const closed = await sandbox.createPreviewURL({ port: 8000, authConfig: { type: 'token' } })
    assert.deepEqual([closed.id, closed.authConfig], [open.id, { type: 'token' }])
    assert.equal((await fetch(closed.url)).status, 401)
    const headers = { Authorization: `Bearer ${closed.token}` }
    assert.equal((await fetch(closed.url, { headers })).status, 200)
    const { token: _, ...listed } = closed
    assert.deepEqual(await sandbox.createPreviewURL({ port: 8000 }), listed)
    assert.deepEqual(await sandbox.listPreviewURLs(), [listed])
    const own = { scheme: 'bearer', token: 'a-token-of-my-own' }
    assert.equal((await sandbox.createPreviewURL({ port: 8000, authConfig: own })).token, own.token)
    await sandbox.deletePreviewURL(8000)
    await sandbox.deletePreviewURL(8000)
    assert.deepEqual(await sandbox.listPreviewURLs(), [])
    await failsWith(sandbox.createPreviewURL({ port: 0 }), 'bad_request')
    await failsWith(sandbox.createPreviewURL({ port: 8000, authConfig: { password: 'x' } }), 'not_supported')
  },
  'a preview URL has the domain that is given': async () => {
    const preview = await sandbox.createPreviewURL({ port: 8001, domain: 'app.example.com' })
    assert.equal(preview.customHostname, 'app.example.com')
    await sandbox.deletePreviewURL(8001)
  },
  'a sandbox has its id, its status and its parts': async () => {
    assert.match(sandbox.sandboxId, /^sbx-/)
    assert.equal(sandbox.status, 'running')
    assert.equal(sandbox.commands, sandbox.exec)
    assert.equal((await sandbox.commands.run('echo the same')).stdout, 'the same\n')
    assert.deepEqual(
      [typeof sandbox.agent.start, typeof files.read, typeof pty.create],
      Array(3).fill('function'),
    )
  },
})

testSeed('opencomputer/exec', {
  'exec.run gives output and exit code, with variables and a directory': async () => {
    const result = await exec.run('pwd; printf "$X"; echo oops >&2; exit 3', { cwd: '/tmp', env: { X: 'y' } })
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
})

testSeed('opencomputer/files', {
  'files are written from text and bytes, and read as both': async () => {
    await files.write('/tmp/deep/down/note.txt', 'grüße')
    assert.equal(await files.read('/tmp/deep/down/note.txt'), 'grüße')
    await files.write('/tmp/bytes', Uint8Array.of(0, 255, 10))
    assert.deepEqual(await files.readBytes('/tmp/bytes'), Uint8Array.of(0, 255, 10))
    await assert.rejects(files.read('/nothing/here'), {
      message: /^Failed to read \/nothing\/here: 404 file not found/,
      code: 'file_not_found',
    })
    await assert.rejects(files.write('/tmp/bytes/below', ''), {
      message: /^Failed to write \/tmp\/bytes\/below: 4/,
    })
  },
  'directories are made with their parents and listed, by default the root': async () => {
    await files.makeDir('/tmp/a/b/c')
    await files.makeDir('/tmp/a/b/c')
    await files.write('/tmp/a/five', '12345')
    const [b, five] = await files.list('/tmp/a')
    assert.deepEqual([b?.name, b?.isDir, b?.path], ['b', true, '/tmp/a/b'])
    assert.deepEqual(five, { name: 'five', isDir: false, path: '/tmp/a/five', size: 5 })
    assert.ok((await files.list()).some(({ path, isDir }) => path === '/tmp' && isDir))
    await assert.rejects(files.list('/nothing'), { message: /^Failed to list \/nothing: 404 / })
    await assert.rejects(files.makeDir('/tmp/a/five'), { message: /^Failed to mkdir \/tmp\/a\/five: 4/ })
  },
  'files and directories are removed, and exists tells without throwing': async () => {
    await files.write('/tmp/gone/file', '')
    assert.deepEqual([await files.exists('/tmp/gone/file'), await files.exists('/tmp/gone')], [true, true])
    await files.remove('/tmp/gone')
    await files.remove('/tmp/gone')
    assert.equal(await files.exists('/tmp/gone/file'), false)
    assert.equal(await files.exists('/nothing/here'), false)
    await assert.rejects(files.remove(''), { message: /^Failed to remove : 400 / })
  },
})

testSeed('opencomputer/pty', {
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
})
