// Checks docs/coming-from/opencomputer.md row by row, through our SDK.
import assert from 'node:assert/strict'
import { type FromCheckpointOptions, Sandbox } from 'islet'
import { failsWith } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'
import { agentRows } from './opencomputer-agent.ts'
import { testRows } from './rows.ts'
import { until } from './until.ts'

const { server } = await startSuite()
const connection = { url: server.url, apiKey: server.key }
const sandbox = await Sandbox.create({
  ...connection,
  runtime: 'host',
  env: { GREETING: 'hello', ANTHROPIC_API_KEY: 'a key that nothing asks for' },
})
const { exec, files, pty } = sandbox
await files.write('base', 'base\n')
const base = await sandbox.createCheckpoint('base')
const fromBase = (options: FromCheckpointOptions = {}) =>
  Sandbox.createFromCheckpoint(base.id, { ...connection, ...options })

const text = (bytes: Uint8Array[]) => Buffer.concat(bytes).toString()
const PYTHON_SERVER = 'exec python3 -m http.server 8000 --bind 127.0.0.1'

testRows('opencomputer.md', {
  'Sandbox.create(opts)': async () => {
    const made = await Sandbox.create({
      ...connection,
      runtime: 'host',
      env: { A: '1' },
      metadata: { team: 'blue' },
      resources: { cpu: 1, memory: '512Mi' },
      timeout: { idle: '10m' },
    })
    assert.equal((await made.getInfo()).timeouts.idleMs, 600_000)
    assert.equal((await sandbox.getInfo()).timeouts.idleMs, 300_000)
    assert.deepEqual((await made.getInfo()).metadata, { team: 'blue' })
    assert.equal((await made.getInfo()).resources.memoryBytes, 512 * 1024 * 1024)
    assert.equal((await made.exec.run('printf "$A"')).stdout, '1')
    await made.kill()
  },
  'Sandbox.connect(sandboxId, opts)': async () => {
    const again = await Sandbox.connect(sandbox.sandboxId, connection)
    assert.equal((await again.exec.run('printf "$GREETING"')).stdout, 'hello')
    await failsWith(Sandbox.connect('sbx-00000000000000000000', connection), 'sandbox_not_found')
  },
  'Sandbox.createFromCheckpoint(checkpointId, opts)': async () => {
    const made = await fromBase({ timeout: { idle: '1m' }, env: { MORE: 'more' } })
    assert.equal((await made.exec.run('printf "$GREETING $MORE"; cat base')).stdout, 'hello morebase\n')
    assert.equal((await made.getInfo()).timeouts.idleMs, 60_000)
    await made.kill()
    const same = await fromBase()
    assert.equal((await same.getInfo()).timeouts.idleMs, 300_000)
    await same.kill()
  },
  'sandbox.kill()': async () => {
    const made = await Sandbox.create({ ...connection, runtime: 'host' })
    await made.kill()
    await made.kill()
    assert.equal(made.status, 'stopped')
  },
  'sandbox.isRunning()': async () => {
    assert.equal(await sandbox.isRunning(), true)
    const made = await fromBase()
    await made.hibernate()
    assert.equal(await made.isRunning(), false)
    assert.equal((await made.getInfo()).status, 'hibernated')
    await made.kill()
    assert.equal(await made.isRunning(), false)
  },
  'sandbox.hibernate()': async () => {
    const made = await fromBase()
    const { pid } = await made.exec.start('sleep 600').then(({ sessionId }) => made.exec.get(sessionId))
    await made.hibernate()
    assert.equal(made.status, 'hibernated')
    const woken = await made.exec.run(`cat base; kill -0 ${pid}`)
    assert.deepEqual([woken.stdout, woken.exitCode, woken.autoResumed], ['base\n', 0, true])
    await made.kill()
  },
  'sandbox.wake(opts)': async () => {
    const made = await fromBase({ timeout: { idle: '7m' } })
    await made.hibernate()
    await made.wake()
    assert.deepEqual([made.status, (await made.getInfo()).timeouts.idleMs], ['running', 420_000])
    await made.hibernate()
    await made.wake({ timeout: '2m' })
    assert.equal((await made.getInfo()).timeouts.idleMs, 120_000)
    await made.wake({ timeout: '3m' })
    assert.deepEqual([made.status, (await made.getInfo()).timeouts.idleMs], ['running', 180_000])
    await made.kill()
  },
  'sandbox.setTimeout(timeout)': async () => {
    const made = await fromBase()
    await made.setTimeout('15m')
    assert.equal((await made.getInfo()).timeouts.idleMs, 900_000)
    await made.setTimeout(1000)
    await until(async () => !(await made.isRunning()))
    assert.equal(made.status, 'hibernated')
    await made.kill()
  },
  'sandbox.sandboxId': async () => {
    assert.match(sandbox.sandboxId, /^sbx-/)
  },
  'sandbox.status': async () => {
    assert.equal(sandbox.status, 'running')
  },
  'sandbox.commands': async () => {
    assert.equal((await sandbox.exec.run('echo the same')).stdout, 'the same\n')
  },

  'sandbox.createCheckpoint(name)': async () => {
    const made = await sandbox.createCheckpoint('named')
    assert.deepEqual([made.name, made.sandboxId], ['named', sandbox.id])
    await failsWith(sandbox.createCheckpoint('named'), 'conflict')
  },
  'sandbox.listCheckpoints()': async () => {
    const names = (await sandbox.listCheckpoints()).map(({ name }) => name)
    assert.deepEqual(names, ['base', 'named'])
  },
  'sandbox.restoreCheckpoint(checkpointId)': async () => {
    const made = await fromBase()
    const { id } = await made.createCheckpoint('before')
    await made.files.write('base', 'changed')
    await made.files.write('new', '')
    await made.restoreCheckpoint(id)
    assert.equal(await made.files.read('base'), 'base\n')
    assert.equal(await made.files.exists('new'), false)
    await made.kill()
  },
  'sandbox.deleteCheckpoint(checkpointId)': async () => {
    const [, named] = await sandbox.listCheckpoints()
    await sandbox.deleteCheckpoint(named!.id)
    await failsWith(sandbox.deleteCheckpoint(named!.id), 'checkpoint_not_found')
    assert.equal((await sandbox.listCheckpoints()).length, 1)
  },
  'Sandbox.createCheckpointPatch(checkpointId, opts)': async () => {
    const patch = await Sandbox.createCheckpointPatch(base.id, {
      ...connection,
      script: 'echo patched >> base',
      description: 'adds a line',
    })
    assert.deepEqual([patch.checkpointId, patch.description], [base.id, 'adds a line'])
    const made = await fromBase()
    assert.equal(await made.files.read('base'), 'base\npatched\n')
    assert.equal((await made.listPatches())[0]?.status, 'applied')
    await Sandbox.createCheckpointPatch(base.id, { ...connection, script: 'echo again >> base' })
    await made.hibernate()
    await made.wake()
    assert.equal(await made.files.read('base'), 'base\npatched\nagain\n')
    await made.kill()
  },
  'Sandbox.listCheckpointPatches(checkpointId, opts)': async () => {
    const patches = await Sandbox.listCheckpointPatches(base.id, connection)
    assert.deepEqual(
      patches.map(({ script }) => script),
      ['echo patched >> base', 'echo again >> base'],
    )
  },
  'Sandbox.deleteCheckpointPatch(checkpointId, patchId, opts)': async () => {
    const [first, second] = await Sandbox.listCheckpointPatches(base.id, connection)
    await Sandbox.deleteCheckpointPatch(base.id, first!.id, connection)
    assert.deepEqual(await Sandbox.listCheckpointPatches(base.id, connection), [second])
    await failsWith(Sandbox.deleteCheckpointPatch(base.id, first!.id, connection), 'patch_not_found')
  },

  'sandbox.exec.run(command, opts)': async () => {
    const result = await exec.run('pwd; printf "$X"; echo oops >&2; exit 3', { cwd: '/tmp', env: { X: 'y' } })
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['/tmp\ny', 'oops\n', 3])
    const slow = await exec.run('sleep 60', { timeout: '1s' })
    assert.deepEqual([slow.timedOut, slow.exitCode], [true, 124])
  },
  'sandbox.exec.start(command, opts)': async () => {
    const [out, err]: [Uint8Array[], Uint8Array[]] = [[], []]
    let exit: number | undefined
    const session = await exec.start('sh', {
      args: ['-c', 'echo "$0 $X" in $PWD; echo bad >&2; exit 4', 'arg'],
      env: { X: 'x' },
      cwd: '/tmp',
      timeout: '60s',
      maxRunAfterDisconnect: '60s',
      onStdout: (data) => void out.push(data),
      onStderr: (data) => void err.push(data),
      onExit: (code) => {
        exit = code
      },
    })
    assert.equal(await session.done, 4)
    assert.deepEqual([text(out), text(err), exit], ['arg x in /tmp\n', 'bad\n', 4])
  },
  'sandbox.exec.attach(sessionId, opts)': async () => {
    const printed = Promise.withResolvers<void>()
    const first = await exec.start('echo before; cat', { onStdout: () => printed.resolve() })
    await printed.promise
    const seen: string[] = []
    const again = await exec.attach(first.sessionId, {
      onStdout: (data) => void seen.push(text([data])),
      onScrollbackEnd: () => void seen.push('(live)'),
    })
    await again.sendStdin('after\n')
    again.closeStdin()
    assert.equal(await again.done, 0)
    assert.equal(seen.join(''), 'before\n(live)after\n')
  },
  'sandbox.exec.list()': async () => {
    const { processId } = await exec.run('true')
    assert.equal((await exec.list())[0]?.id, processId)
  },
  'sandbox.exec.kill(sessionId, signal)': async () => {
    const session = await exec.start('sleep 600')
    await exec.kill(session.sessionId)
    assert.equal(await session.done, 128 + 9)
    const other = await exec.start('sleep 600')
    await exec.kill(other.sessionId, 15)
    assert.equal((await other.result).signal, 'SIGTERM')
  },
  'session.sessionId': async () => {
    const session = await exec.start('true')
    assert.equal((await exec.get(session.sessionId)).id, session.sessionId)
  },
  'session.done': async () => {
    assert.equal(await (await exec.start('exit 7')).done, 7)
  },
  'session.sendStdin(data)': async () => {
    const out: Uint8Array[] = []
    const session = await exec.start('cat', { onStdout: (data) => void out.push(data) })
    await session.sendStdin('text and ')
    await session.sendStdin(Buffer.from('bytes'))
    session.closeStdin()
    assert.equal(await session.done, 0)
    assert.equal(text(out), 'text and bytes')
  },
  'session.kill(signal)': async () => {
    // Without a shell: a shell that has not started its command yet ignores SIGINT.
    const session = await exec.start('sleep', { args: ['600'] })
    await session.kill('SIGINT')
    assert.equal((await session.result).signal, 'SIGINT')
  },
  'session.close()': async () => {
    const session = await exec.start('sleep 600')
    session.close()
    assert.equal((await exec.get(session.sessionId)).status, 'running')
    await exec.kill(session.sessionId)
  },

  ...agentRows(sandbox),

  'sandbox.files.read(path)': async () => {
    await files.write('note.txt', 'grüße')
    assert.equal(await files.read('note.txt'), 'grüße')
  },
  'sandbox.files.readBytes(path)': async () => {
    await files.write('bytes', Uint8Array.of(0, 255, 10))
    assert.deepEqual(await files.readBytes('bytes'), Uint8Array.of(0, 255, 10))
  },
  'sandbox.files.write(path, content)': async () => {
    await files.write('/tmp/deep/down/file', 'text')
    await files.write('/tmp/deep/down/file', Buffer.from('bytes'))
    assert.equal(await files.read('/tmp/deep/down/file'), 'bytes')
  },
  'sandbox.files.list(path)': async () => {
    assert.ok((await files.list('/')).some(({ path, type }) => path === '/tmp' && type === 'directory'))
  },
  'sandbox.files.makeDir(path)': async () => {
    await files.makeDir('/tmp/a/b/c')
    await files.makeDir('/tmp/a/b/c')
    assert.equal((await files.stat('/tmp/a/b/c')).type, 'directory')
  },
  'sandbox.files.remove(path)': async () => {
    await files.write('/tmp/gone/file', '')
    await files.remove('/tmp/gone')
    assert.equal(await files.exists('/tmp/gone/file'), false)
  },
  'sandbox.files.exists(path)': async () => {
    assert.equal(await files.exists('/tmp'), true)
    assert.equal(await files.exists('/nothing/here'), false)
  },

  'sandbox.pty.create(opts)': async () => {
    const out: Uint8Array[] = []
    const session = await pty.create({ cols: 100, rows: 30, onOutput: (data) => void out.push(data) })
    await session.send('stty size; exit 5\n')
    assert.equal(await session.done, 5)
    assert.match(text(out), /30 100/)
  },
  'ptySession.sessionId': async () => {
    const session = await pty.create()
    assert.equal((await exec.get(session.sessionId)).terminal, true)
    await session.close()
  },
  'ptySession.send(data)': async () => {
    const session = await pty.create()
    await session.send(Buffer.from('exit 6\n'))
    assert.equal(await session.done, 6)
  },
  'ptySession.close()': async () => {
    const session = await pty.create()
    await session.close()
    const ended = await exec.attach(session.sessionId)
    assert.equal((await ended.result).signal, 'SIGHUP')
  },

  'sandbox.createPreviewURL(opts)': async () => {
    await sandbox.runCommand(PYTHON_SERVER, { background: true, cwd: '/tmp' })
    const { url, token } = await sandbox.createPreviewURL({ port: 8000, authConfig: { type: 'token' } })
    assert.equal((await fetch(url)).status, 401)
    assert.equal(await answering(`${url}?islet_token=${token}`), 200)
  },
  'sandbox.listPreviewURLs()': async () => {
    assert.deepEqual(
      (await sandbox.listPreviewURLs()).map(({ port }) => port),
      [8000],
    )
  },
  'sandbox.deletePreviewURL(port)': async () => {
    const [preview] = await sandbox.listPreviewURLs()
    await sandbox.deletePreviewURL(8000)
    assert.deepEqual(await sandbox.listPreviewURLs(), [])
    await assert.rejects(fetch(preview!.url))
  },
})

/** The status once the program inside has come up. */
async function answering(url: string): Promise<number> {
  for (;;) {
    const { status } = await fetch(url)
    if (status !== 502) return status
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
