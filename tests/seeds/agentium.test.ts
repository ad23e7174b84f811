// SandboxAgent on this machine: its life and its runs. It needs no server and no root.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  createSandboxTools,
  SandboxAgent,
  type SandboxAgentConfig,
  type SandboxTool,
} from '@islet/dialects/agentium'
import { build } from 'esbuild'
import { until } from '../coming-from/until.ts'
import { needs } from '../support/programs.ts'
import { root } from '../support/server.ts'
import { failsWith } from '../support/shell.ts'
import { ownWorkspaces, started } from '../support/workspaces.ts'
import { testSeed } from './seeds.ts'

needs('git', 'python3')

const { scratch, list: workspacesThere } = ownWorkspaces()

const run = promisify(execFile)

testSeed('agentium/local', {
  'unix-local runs programs of this machine in a directory of its own': async () => {
    await using agent = await started()
    await using other = await started({ backend: 'unix-local' })
    const [here, there] = await Promise.all([agent.shell('pwd'), other.shell('pwd')])
    assert.ok(here.stdout!.startsWith(`${scratch}/`))
    assert.notEqual(here.stdout, there.stdout)
    process.env.A_SECRET_OF_THE_HOST = 'secret'
    const { output } = await agent.shell('env')
    delete process.env.A_SECRET_OF_THE_HOST
    assert.match(output, /^PATH=/m)
    assert.doesNotMatch(output, /secret/)
  },
  'a workspace stays between runs until it is closed': async () => {
    const agent = new SandboxAgent({
      workspace: { files: [{ path: 'sum.js', contents: 'module.exports = (a, b) => a - b' }] },
    })
    try {
      await agent.start()
      const check =
        "const ok = require('./sum.js')(2, 2) === 4; console.log(ok ? 'pass' : 'fail'); process.exit(ok ? 0 : 1)"
      assert.deepEqual([(await agent.run(check)).exitCode, (await agent.run(check)).output], [1, 'fail\n'])
      await agent.writeFile('sum.js', 'module.exports = (a, b) => a + b')
      assert.deepEqual([(await agent.run(check)).exitCode, (await agent.run(check)).output], [0, 'pass\n'])
    } finally {
      await agent.close()
    }
  },
  'the constructor takes a backend, files, repositories and variables': async () => {
    const { path: repo, commits } = makeRepository()
    await using agent = await started({
      backend: 'unix-local',
      workspace: {
        files: [
          { path: 'notes/a.txt', contents: 'text' },
          { path: 'b.bin', contents: '/wA=', encoding: 'base64' },
        ],
        gitClones: [
          { repo, path: 'main' },
          { repo, path: 'deep/side', ref: 'side' },
          { repo, path: 'tag', ref: 'v1' },
          { repo, path: 'commit', ref: commits[2]!.slice(0, 10) },
          { repo: `file://${encodeURI(repo)}`, path: 'shallow', depth: 1 },
          { repo: `file://${encodeURI(repo)}`, path: 'shallow-ref', depth: 1, ref: 'side' },
          { repo: `file://${encodeURI(repo)}`, path: 'shallow-commit', depth: 1, ref: commits[0]! },
        ],
        env: { GREETING: 'hello' },
      },
    })
    assert.equal(await agent.readFile('notes/a.txt'), 'text')
    assert.equal(await agent.readFile('b.bin', 'base64'), '/wA=')
    assert.equal((await agent.shell('printf "$GREETING"')).output, 'hello')
    const clones = ['main', 'deep/side', 'tag', 'commit', 'shallow', 'shallow-ref', 'shallow-commit']
    const found = await Promise.all(clones.map((path) => agent.readFile(`${path}/file`)))
    assert.deepEqual(found, ['three', 'two', 'one', 'one', 'three', 'two', 'three'])
    const count = await agent.shell('git rev-list --count HEAD', { cwd: 'shallow' })
    assert.equal(count.output, '1\n')
    assert.equal((await agent.shell('git branch --show-current', { cwd: 'main' })).output, 'main\n')

    const wrong: [SandboxAgentConfig, RegExp][] = [
      [{ backend: 'unix' as 'docker' }, /backend must be one of/],
      [{ workspaces: {} } as SandboxAgentConfig, /does not know the option workspaces/],
      [{ workspace: { files: [{ path: 'a' }] } as object }, /contents of a must be text/],
      [{ workspace: { files: [{ path: 'a', contents: '?', encoding: 'base64' }] } }, /not base64/],
      [{ workspace: { env: { 'A=B': '' } } }, /env/],
      [{ workspace: { gitClones: [{ repo: '--upload-pack=touch x', path: 'a' }] } }, /repo is not/],
      [{ workspace: { gitClones: [{ repo: 'ext::sh -c id', path: 'a' }] } }, /repo is not/],
      [{ workspace: { gitClones: [{ repo, path: 'a', ref: '--orphan' }] } }, /ref is not/],
    ]
    for (const [config, message] of wrong)
      assert.throws(() => new SandboxAgent(config), { code: 'bad_request', message })
  },
  'start makes the workspace once': async () => {
    await using agent = new SandboxAgent({ workspace: { files: [{ path: 'a', contents: '1' }] } })
    await Promise.all([agent.start(), agent.start()])
    await agent.writeFile('a', '2')
    await agent.start()
    assert.equal(await agent.readFile('a'), '2')
    assert.equal(workspacesThere().length, 1)

    const { path: repo } = makeRepository()
    for (const clone of [
      { repo: join(scratch, 'none'), path: 'a' },
      { repo, path: 'a', ref: 'none' },
      { repo, path: '../a' },
    ]) {
      const broken = new SandboxAgent({ workspace: { gitClones: [clone] } })
      await failsWith(broken.start(), clone.path === 'a' ? 'bad_request' : 'invalid_path')
      assert.equal(broken.ready, false)
      assert.equal(workspacesThere().length, 1)
    }
    // The address of a repository may hold a password: it reaches the server and stays out of the error.
    const seen: unknown[] = []
    const server = createServer((request, answer) => {
      seen.push(request.headers.authorization)
      answer.writeHead(404).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const repoWithPassword = `http://me:pass%20word@127.0.0.1:${port}/repo`
    const broken = new SandboxAgent({ workspace: { gitClones: [{ repo: repoWithPassword, path: 'a' }] } })
    await assert.rejects(
      broken.start(),
      (error: Error) => !/pass|word/.test(error.message) && /127.0.0.1/.test(error.message),
    )
    assert.equal(seen[0], `Basic ${Buffer.from('me:pass word').toString('base64')}`)
    server.close()
  },
  'run passes code to its interpreter as it is': async () => {
    await using agent = await started()
    const text = 'a\n$HOME `id` $(id) "quoted" \'single\' \\ %s é'
    const programs = [
      ['node', `console.log(${JSON.stringify(text)})\nconsole.log(\`\${1 + 1}\`)`],
      ['python', `print(${JSON.stringify(text)})\nprint(1 + 1)`],
      ['shell', `cat <<'END'\n${text}\nEND\necho $((1 + 1))`],
    ] as const
    for (const [language, code] of programs)
      assert.equal((await agent.run(code, { language })).output, `${text}\n2\n`, language)
    assert.equal((await agent.run('console.log(typeof require)')).output, 'function\n')
    for (const language of ['node', 'python', 'shell'] as const)
      assert.equal((await agent.run('', { language })).exitCode, 0)
    assert.equal((await agent.run('-1; console.log(1)')).output, '1\n')
    assert.equal((await agent.shell('-x 2>/dev/null; echo 1')).output, '1\n')

    await failsWith(agent.run('1', { language: 'ruby' as 'node' }), 'bad_request')
    await failsWith(agent.run('1', { timeout: 1 } as object), 'bad_request')
    await failsWith(agent.run('1', { timeoutSeconds: 0 }), 'bad_request')
    await failsWith(agent.run('a\0b'), 'bad_request')
    await failsWith(agent.run(`//${'x'.repeat(200_000)}`), 'body_too_large')
    await failsWith(new SandboxAgent().run('1'), 'invalid_state')
    await assert.rejects(new SandboxAgent().shell('true'), /Sandbox not started/)
  },
  'a run that takes too long is killed with all that it started': async () => {
    await using agent = await started()
    const mark = `9876${process.pid}`
    const sleeps = [
      `sleep ${mark}1 &`,
      `setsid sleep ${mark}2 &`,
      `(set -m; env -i sleep ${mark}3 &)`,
      `sleep ${mark}4`,
    ]
    const result = await agent.shell(`echo before; ${sleeps.join('\n')}\necho after`, { timeoutSeconds: 1 })
    assert.deepEqual([result.timedOut, result.exitCode, result.output], [true, 124, 'before\n'])
    assert.deepEqual(running(`sleep\0${mark}`), [])
    const spin = await agent.run('process.on("SIGTERM", () => {}); for (;;);', { timeoutSeconds: 0.5 })
    assert.deepEqual([spin.timedOut, spin.exitCode], [true, 124])

    const controller = new AbortController()
    const long = agent.shell(`sleep ${mark}5`, { signal: controller.signal })
    await until(() => running(`sleep\0${mark}5`).length > 0)
    controller.abort()
    await assert.rejects(long, { name: 'AbortError' })
    assert.deepEqual(running(`sleep\0${mark}`), [])
    await assert.rejects(agent.shell('true', { signal: AbortSignal.abort() }), { name: 'AbortError' })
  },
  'a result has the output, the exit code of a signal, and what was cut': async () => {
    await using agent = await started()
    const both = await agent.shell('echo err >&2; echo out; exit 3')
    assert.deepEqual(
      [both.output, both.stdout, both.stderr, both.exitCode],
      ['out\nerr\n', 'out\n', 'err\n', 3],
    )
    assert.deepEqual([both.timedOut, both.truncated], [false, false])
    assert.equal((await agent.shell('kill -KILL $$')).exitCode, 137)
    assert.equal((await agent.shell('kill -TERM $$')).exitCode, 143)
    const split =
      'process.stdout.write(Buffer.from([0xe2, 0x82])); setTimeout(() => process.stdout.write(Buffer.from([0xac])), 100)'
    assert.equal((await agent.run(split)).output, '€')
    const long = await agent.run("process.stdout.write('é'.repeat(9_000_000))")
    assert.deepEqual([long.truncated, long.exitCode], [true, 0])
    assert.equal(long.output, 'é'.repeat(8 * 1024 * 1024))
    const many = await Promise.all(Array.from({ length: 5 }, (_, index) => agent.shell(`echo ${index}`)))
    assert.deepEqual(
      many.map(({ output }) => output),
      ['0\n', '1\n', '2\n', '3\n', '4\n'],
    )
  },
  'shell takes the variables of the call and a directory': async () => {
    await using agent = await started({ workspace: { env: { A: 'workspace', B: 'workspace' } } })
    await agent.writeFile('below/file', '')
    const { output } = await agent.shell('echo $A $B; ls', { env: { B: 'call' }, cwd: 'below' })
    assert.equal(output, 'workspace call\nfile\n')
    await failsWith(agent.shell('ls', { cwd: '..' }), 'invalid_path')
    await failsWith(agent.shell('ls', { cwd: 'none' }), 'file_not_found')
    await failsWith(agent.shell('ls', { language: 'node' } as object), 'bad_request')
    // A process in the background does not hold up the run, and keeps running.
    const { output: pid } = await agent.shell('sleep 600 & echo $!')
    process.kill(Number(pid), 0)
  },
  'close removes the workspace and ends what runs in it': async () => {
    const agent = await started()
    const mark = `9875${process.pid}`
    await agent.shell(`setsid sleep ${mark} & mkdir -p a/b; chmod 0 a`)
    const { stdout } = await agent.shell('pwd')
    const long = agent.shell(`sleep ${mark}1`)
    await until(() => running(`sleep\0${mark}1`).length > 0)
    const late = agent.shell('true')
    await Promise.all([agent.close(), failsWith(late, 'invalid_state')])
    assert.equal((await long).exitCode, 137)
    assert.deepEqual(running(`sleep\0${mark}`), [])
    assert.ok(!existsSync(stdout!.trim()))
  },
  'ready is true between start and close': async () => {
    const agent = new SandboxAgent()
    assert.deepEqual([agent.kind, agent.ready], ['sandbox-agent', false])
    await agent.close()
    await agent.start()
    assert.equal(agent.ready, true)
    await agent.close()
    assert.equal(agent.ready, false)
    await agent.close()
    await failsWith(agent.readFile('a'), 'invalid_state')
    await agent.start()
    await Promise.all([agent.close(), agent.close()])
  },
  'the methods of a sandbox are tools': async () => {
    await using agent = await started()
    const tools = new Map<string, SandboxTool>(createSandboxTools(agent).map((tool) => [tool.name, tool]))
    const call = (name: string, args: Record<string, unknown>) => tools.get(`sandbox_${name}`)!.execute(args)
    assert.deepEqual(
      [...tools.keys()],
      ['sandbox_run', 'sandbox_shell', 'sandbox_read_file', 'sandbox_write_file', 'sandbox_list_files'],
    )
    for (const { parameters, description } of tools.values())
      assert.ok(parameters.type === 'object' && description)
    assert.equal(await call('write_file', { path: 'd/a.py', contents: 'print(6 * 7)' }), 'ok')
    assert.equal(await call('read_file', { path: 'd/a.py' }), 'print(6 * 7)')
    assert.equal(await call('read_file', { path: 'none' }), '[file not found]')
    assert.equal(await call('list_files', {}), 'd/\n')
    assert.equal(await call('list_files', { path: 'd' }), 'a.py\n')
    const ran = { exitCode: 0, timedOut: false, output: '42\n' }
    assert.deepEqual(JSON.parse(await call('shell', { command: 'python3 d/a.py' })), ran)
    assert.deepEqual(JSON.parse(await call('run', { code: 'print(42)', language: 'python' })), ran)
    assert.deepEqual(
      JSON.parse(await call('shell', { command: 'sleep 9', timeoutSeconds: 0.2 })).timedOut,
      true,
    )
    assert.match(await call('read_file', { path: '../x' }), /^Error: .*leads out of the workspace/)
    assert.match(await call('read_file', {}), /^Error: The argument path is missing/)
    assert.match(
      await call('run', { code: 1, language: 'node' }),
      /^Error: The argument code must be a string/,
    )
    const [short] = createSandboxTools(agent, { prefix: 'my_', maxChars: 200 })
    assert.equal(short!.name, 'my_run')
    const { output } = JSON.parse(
      await short!.execute({ code: "console.log('x'.repeat(1000))", language: 'node' }),
    )
    assert.match(output, /^x{80}\n\[… 841 characters left out …\]\nx{79}\n$/)
  },
  'another process goes on with a snapshot': async () => {
    const agent = await started({ workspace: { env: { TURN: '1' } } })
    await agent.shell('echo one >>log')
    const file = join(scratch, 'snapshot.json')
    writeFileSync(file, JSON.stringify(await agent.snapshot()))
    await agent.close()
    const code = `
      import { readFileSync } from 'node:fs'
      import { SandboxAgent } from '@islet/dialects/agentium'
      const agent = new SandboxAgent()
      await agent.resume(JSON.parse(readFileSync(${JSON.stringify(file)}, 'utf8')))
      console.log((await agent.shell('echo two >>log; cat log; echo $TURN')).output)
      await agent.close()`
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', code], { cwd: root })
    assert.equal(stdout, 'one\ntwo\n1\n\n')
  },
  'a backend whose package is missing says which one': async () => {
    const outfile = join(scratch, 'alone/agentium.mjs')
    const entry = join(root, 'packages/dialects/src/agentium/index.ts')
    await build({
      entryPoints: [entry],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      external: ['ws'],
      tsconfigRaw: {},
    })
    const code = `
      import { SandboxAgent, E2BSandbox, DaytonaSandbox } from './agentium.mjs'
      for (const start of [
        () => new SandboxAgent({ backend: 'docker' }).start(),
        () => new SandboxAgent({ backend: 'remote', remote: new E2BSandbox() }).start(),
        () => new SandboxAgent({ backend: 'remote', remote: new DaytonaSandbox() }).start(),
      ]) await start().catch(({ code, message, hint }) => console.log(code, message, hint))`
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', code], {
      cwd: join(scratch, 'alone'),
    })
    assert.deepEqual(stdout.trim().split('\n'), [
      'not_supported dockerode is required for the backend docker. Install it: npm install dockerode',
      'not_supported e2b is required for E2BSandbox. Install it: npm install e2b',
      'not_supported @daytonaio/sdk is required for DaytonaSandbox. Install it: npm install @daytonaio/sdk',
    ])
  },
})

/** A repository with a branch, a tag and three commits. */
function makeRepository(): { path: string; commits: string[] } {
  const path = join(scratch, 'a repository; $(touch pwned)')
  mkdirSync(path, { recursive: true })
  const git = (...args: string[]) => {
    const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.com']
    return execFileSync('git', ['-C', path, ...author, ...args], { encoding: 'utf8' }).trim()
  }
  if (existsSync(join(path, '.git'))) return { path, commits: git('log', '--format=%H').split('\n') }
  git('init', '--quiet', '--initial-branch=main')
  for (const text of ['one', 'two', 'three']) {
    writeFileSync(join(path, 'file'), text)
    git('add', '.')
    git('commit', '--quiet', '-m', text)
    if (text === 'one') git('tag', 'v1')
    if (text === 'two') git('branch', 'side')
  }
  return { path, commits: git('log', '--format=%H').split('\n') }
}

/** The processes with this text in their command line. */
function running(text: string): string[] {
  return readdirSync('/proc').filter((id) => {
    try {
      return /^\d+$/.test(id) && readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(text)
    } catch {
      return false
    }
  })
}
