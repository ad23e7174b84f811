// SandboxAgent with the backend remote: an object of the test, a sandbox of an Islet server, and E2B's published client.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  type CloudSandbox,
  createSandboxTools,
  E2BSandbox,
  isletSandbox,
  SandboxAgent,
  type SandboxAgentConfig,
  type SandboxRunOptions,
} from '@islet/dialects/agentium'
import { Sandbox } from 'islet'
import { FakeE2B } from '../support/e2b.ts'
import { needs } from '../support/programs.ts'
import { failsWith } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'
import { ownWorkspaces, started } from '../support/workspaces.ts'
import { testSeed } from './seeds.ts'

needs('git')

const { server } = await startSuite()
const { scratch } = ownWorkspaces()
const connection = { url: server.url, apiKey: server.key }
const onIslet = (options = {}) => isletSandbox({ ...connection, runtime: 'host', ...options })
const remotely = (remote: CloudSandbox, workspace: SandboxAgentConfig['workspace'] = {}) =>
  started({ backend: 'remote', remote, workspace })

/** The smallest remote: the methods of the document over a workspace of this machine, and a list of what was called. */
function smallRemote(): CloudSandbox & { calls: string[]; options: SandboxRunOptions[] } {
  const agent = new SandboxAgent()
  const calls: string[] = []
  const options: SandboxRunOptions[] = []
  const called = <Result>(name: string, result: Promise<Result>) => {
    calls.push(name)
    return result
  }
  return {
    calls,
    options,
    start: () => called('start', agent.start()),
    run: (code, given) => {
      options.push(given!)
      return called('run', agent.run(code, given))
    },
    writeFile: (path, contents, encoding) => called('writeFile', agent.writeFile(path, contents, encoding)),
    readFile: (path, encoding) => called('readFile', agent.readFile(path, encoding)),
    close: () => called('close', agent.close()),
  }
}

testSeed('agentium/remote', {
  'start of a remote starts it and writes the files there': async () => {
    const remote = smallRemote()
    await using agent = await remotely(remote, {
      files: [{ path: 'd/a', contents: 'aGk=', encoding: 'base64' }],
    })
    assert.deepEqual(remote.calls, ['start', 'writeFile'])
    assert.equal(await agent.readFile('d/a'), 'hi')
    await failsWith(new SandboxAgent({ backend: 'remote' }).start(), 'bad_request')
    const { run: _, ...incomplete } = smallRemote()
    await assert.rejects(remotely(incomplete as unknown as CloudSandbox), /remote has no method run/)
    const broken = smallRemote()
    const workspace = { gitClones: [{ repo: join(scratch, 'none'), path: 'a' }] }
    await assert.rejects(remotely(broken, workspace), /git clone/)
    assert.equal(broken.calls.at(-1), 'close')
  },
  'run and the files of a remote are those of the remote': async () => {
    const remote = smallRemote()
    await using agent = await remotely(remote, { env: { A: 'workspace', B: 'workspace' } })
    const code = 'console.log(process.env.A, process.env.B)'
    assert.equal(
      (await agent.run(code, { env: { B: 'call' }, timeoutSeconds: 9 })).output,
      'workspace call\n',
    )
    assert.deepEqual(remote.options[0], {
      language: 'node',
      timeoutSeconds: 9,
      env: { A: 'workspace', B: 'call' },
    })
    assert.equal((await agent.shell('exit 3')).exitCode, 3)
    assert.equal(remote.options[1]!.language, 'shell')
    await agent.writeFile('a', 'b')
    assert.equal(await agent.readFile('none'), null)
    assert.deepEqual(remote.calls.slice(-2), ['writeFile', 'readFile'])
  },
  'a snapshot of a remote that has none is empty': async () => {
    await using agent = await remotely(smallRemote(), {
      env: { A: '1' },
      files: [{ path: 'a', contents: '' }],
    })
    const { files, env } = await agent.snapshot()
    assert.deepEqual([files, env], [[], { A: '1' }])
    // Files that were saved elsewhere can be brought to it, with modes, symlinks and empty directories.
    await using local = await started()
    await local.shell(
      "mkdir -p \"e'm\" d; echo echo hi >d/run; chmod 755 d/run; ln -s d/run 'a link'; chmod 700 d",
    )
    const saved = await local.snapshot()
    await agent.resume(saved)
    assert.equal(
      (await agent.shell('"./a link"; stat -c "%a %n" *')).output,
      "hi\n777 a link\n700 d\n755 e'm\n",
    )
    await failsWith(agent.resume({ ...saved, snapshotId: 'snp-1' }), 'not_supported')
  },
  'close closes the remote': async () => {
    const remote = smallRemote()
    const agent = await remotely(remote)
    await agent.close()
    await agent.close()
    assert.deepEqual(remote.calls, ['start', 'close'])
    assert.equal(agent.ready, false)
  },
  'a sandbox of an Islet server is a remote': async () => {
    const remote = onIslet()
    assert.equal(remote.providerId, 'islet')
    const make =
      'git init -q repo && cd repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one'
    await using base = await Sandbox.create({ ...connection, runtime: 'host' })
    assert.equal((await base.exec.run(make)).exitCode, 0)
    const snapshot = await base.createSnapshot()
    const source = isletSandbox({ ...connection, snapshot: snapshot.id })
    const { workdir } = await base.getInfo()
    await using cloned = await remotely(source, { gitClones: [{ repo: `${workdir}/repo`, path: 'a/clone' }] })
    assert.match((await cloned.shell('git log --format=%s', { cwd: 'a/clone' })).output, /^one$/m)

    const agent = await remotely(remote, {
      files: [{ path: 'd/a.py', contents: 'import os\nprint(os.environ["A"], os.environ["B"])' }],
      env: { A: 'workspace' },
    })
    const ran = await agent.shell('python3 a.py; exit 3', { cwd: 'd', env: { B: 'call' } })
    assert.deepEqual([ran.output, ran.exitCode, ran.timedOut], ['workspace call\n', 3, false])
    const text = 'a\n$HOME `id` "quoted" é'
    const code = `console.log(${JSON.stringify(text)}); console.error('err'); process.kill(process.pid, 'SIGKILL')`
    const killed = await agent.run(code)
    assert.deepEqual([killed.stdout, killed.stderr, killed.exitCode], [`${text}\n`, 'err\n', 137])
    const slow = await agent.shell('echo part; sleep 60', { timeoutSeconds: 1 })
    assert.deepEqual([slow.timedOut, slow.exitCode, slow.output], [true, 124, 'part\n'])
    await agent.writeFile('bytes', 'AP8=', 'base64')
    assert.equal(await agent.readFile('bytes', 'base64'), 'AP8=')
    assert.equal(await agent.readFile('none'), null)
    await failsWith(agent.readFile('d'), 'is_a_directory', 'not_a_file')
    const list = createSandboxTools(agent).find(({ name }) => name === 'sandbox_list_files')!
    assert.equal(await list.execute({ path: 'd' }), 'a.py\n')
    // The remote is a CloudSandbox by itself, whose language is python.
    assert.equal((await remote.run('print(6 * 7)')).output, '42\n')

    const there = isletSandbox({ ...connection, sandbox: remote.id })
    const other = await remotely(there)
    await failsWith(onIslet({ sandbox: remote.id }).start(), 'bad_request')
    assert.equal(await other.readFile('bytes', 'base64'), 'AP8=')
    await other.close()
    const { id } = remote
    assert.equal((await Sandbox.get(id!, connection)).status, 'running')
    await agent.close()
    assert.equal((await Sandbox.get(id!, connection)).status, 'stopped')
  },
  'a snapshot of an Islet sandbox is its files, or kept by the server': async () => {
    await using agent = await remotely(onIslet(), { env: { A: '1' } })
    const dotfiles = (await agent.snapshot()).files.map(({ path }) => path)
    await agent.shell(
      'umask 022; mkdir -p empty d; printf hi >d/f; chmod 700 d/f; ln -s d/f link; mkdir node_modules; touch node_modules/x',
    )
    const snapshot = JSON.parse(
      JSON.stringify(await agent.snapshot({ ignore: ['node_modules', ...dotfiles] })),
    )
    const found = snapshot.files.map(
      ({ path, type = 'file', mode, target, contents }: Record<string, unknown>) => [
        path,
        type,
        mode ?? target,
        contents,
      ],
    )
    const wanted = [
      ['d/f', 'file', 0o700, 'aGk='],
      ['empty', 'directory', 0o755, ''],
      ['link', 'symlink', 'd/f', ''],
    ]
    assert.deepEqual(found, wanted)
    await failsWith(agent.snapshot({ maxBytes: 1 }), 'limit_exceeded')
    await agent.shell('rm -r d; touch new')
    const before = (await Sandbox.list(connection)).sandboxes.length
    await agent.resume(snapshot)
    assert.equal(
      (await agent.shell('ls; stat -c %a d/f; cat link; printf " $A"')).output,
      'd\nempty\nlink\n700\nhi 1',
    )
    assert.equal((await Sandbox.list(connection)).sandboxes.length, before)
    await using local = new SandboxAgent()
    await local.resume(snapshot)
    assert.equal(await local.readFile('link'), 'hi')

    await using whole = await remotely(onIslet({ snapshots: 'server' }), { env: { A: '2' } })
    await whole.shell('echo kept >/tmp/elsewhere; echo kept >here')
    const kept = JSON.parse(JSON.stringify(await whole.snapshot()))
    assert.deepEqual(kept.files, [])
    await whole.close()
    await using again = new SandboxAgent({ backend: 'remote', remote: onIslet() })
    await again.resume(kept)
    assert.equal((await again.shell('cat /tmp/elsewhere here; echo $A')).output, 'kept\nkept\n2\n')
    await failsWith(new SandboxAgent().resume(kept), 'not_supported')
  },
  'an E2B sandbox is a remote through the package e2b': async () => {
    const directory = join(scratch, 'e2b')
    mkdirSync(directory)
    await using fake = await FakeE2B.start(directory)
    Object.assign(process.env, { E2B_API_URL: fake.url, E2B_SANDBOX_URL: fake.url })
    const remote = new E2BSandbox({ apiKey: 'e2b_0123', template: 'mine' })
    const agent = await remotely(remote, {
      env: { A: 'workspace' },
      files: [{ path: 'd/a', contents: 'hi' }],
    })
    assert.deepEqual(fake.created, [{ templateID: 'mine', apiKey: 'e2b_0123' }])
    const text = 'a\n$HOME `id` "quoted" \'single\' é'
    assert.equal((await agent.run(`console.log(${JSON.stringify(text)})`)).output, `${text}\n`)
    const both = await agent.shell('cat a; echo "$A$B" >&2; exit 3', { env: { B: 'call' }, cwd: 'd' })
    assert.deepEqual(
      [both.stdout, both.stderr, both.exitCode, both.timedOut],
      ['hi', 'workspacecall\n', 3, false],
    )
    assert.equal((await agent.shell('kill -KILL $$')).exitCode, 137)
    const slow = await agent.shell('echo part; (sleep 2; touch late) & sleep 60', { timeoutSeconds: 1 })
    assert.deepEqual([slow.timedOut, slow.exitCode, slow.output], [true, 124, 'part\n'])
    const aborted = agent.shell('sleep 60', { signal: AbortSignal.timeout(500) })
    await assert.rejects(aborted, { name: 'AbortError' })
    await agent.writeFile('bytes', 'AP8=', 'base64')
    assert.equal(await agent.readFile('bytes', 'base64'), 'AP8=')
    assert.equal(await agent.readFile('none'), null)
    assert.equal(await agent.readFile('late'), null)
    await agent.close()
    assert.equal(fake.isKilled, true)
    await failsWith(remote.run('1'), 'invalid_state')
  },
})
