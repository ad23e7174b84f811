// SandboxAgent with the backend docker: a dockerd of the test, with an image made from our Debian base.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { after, before } from 'node:test'
import type { SandboxAgentConfig } from '@islet/dialects/agentium'
import { baseImageForTests } from '../../packages/server/src/image/testing.ts'
import { until } from '../coming-from/until.ts'
import { Dockerd } from '../support/dockerd.ts'
import { isProgram, needs } from '../support/programs.ts'
import { root } from '../support/server.ts'
import { failsWith } from '../support/shell.ts'
import { ownWorkspaces, started } from '../support/workspaces.ts'
import { testSeed } from './seeds.ts'

needs('git')

const { scratch, list: workspacesThere } = ownWorkspaces()

const IMAGE = 'islet-agentium-test'
/** The tests need node, python3 and a shell. */
const WITHOUT = [
  'share',
  'include',
  'lib/gcc',
  'lib/git-core',
  'lib/python3',
  'local/include',
  'local/lib',
  'bin/*-gnu-*',
]
const missing = ['dockerd', 'docker'].filter(
  (name) => !(process.env.PATH ?? '').split(delimiter).some((at) => isProgram(join(at, name))),
)
const skip =
  missing.length > 0
    ? `this machine has no ${missing.join(' and no ')}; scripts/setup --test installs docker.io`
    : undefined
let dockerd: Dockerd | undefined

const startedIn = (config: SandboxAgentConfig = {}) =>
  started({ backend: 'docker', dockerImage: IMAGE, ...config })
const containers = async () => (await dockerd!.docker(['ps', '--all', '--quiet'])).split('\n').filter(Boolean)

if (!skip) {
  before(async () => {
    const { imagesDir, image } = await baseImageForTests()
    dockerd = await Dockerd.start(dirname(scratch))
    await dockerd.import(join(imagesDir, image.name, 'root'), IMAGE, [
      './var',
      ...WITHOUT.map((path) => `./usr/${path}`),
    ])
    process.env.DOCKER_HOST = dockerd.host
  })
  after(async () => {
    await dockerd?.[Symbol.asyncDispose]()
  })
}

testSeed(
  'agentium/docker',
  {
    'docker runs programs in a container that has the workspace': async () => {
      await using agent = await startedIn({
        workspace: { files: [{ path: 'd/a.txt', contents: 'hi' }], env: { A: 'workspace' } },
      })
      const python = await agent.run(
        'import os\nprint(open("d/a.txt").read(), os.environ["A"], os.getcwd())',
        { language: 'python' },
      )
      assert.equal(python.output, 'hi workspace /workspace\n')
      const text = 'a\n$HOME `id` "quoted" é'
      assert.equal((await agent.run(`console.log(${JSON.stringify(text)})`)).output, `${text}\n`)
      const both = await agent.shell('echo err >&2; echo "$A"; exit 3', { env: { A: 'call' }, cwd: 'd' })
      assert.deepEqual(
        [both.stdout, both.stderr, both.exitCode, both.timedOut],
        ['call\n', 'err\n', 3, false],
      )
      assert.equal((await agent.shell('kill -KILL $$')).exitCode, 137)
      const long = await agent.run("process.stdout.write('x'.repeat(20_000_000))")
      assert.deepEqual([long.truncated, long.output.length], [true, 16 * 1024 * 1024])

      // The wall: no file of the machine, no capability, and no way out through the files that both sides see.
      assert.equal(
        (await agent.shell(`ls -d ${root}; grep CapEff /proc/self/status`)).stdout,
        'CapEff:\t0000000000000000\n',
      )
      await agent.shell('ln -s /etc etc; ln -s /workspace/d inside; ln -s / slash')
      assert.equal(await agent.readFile('inside/a.txt'), 'hi')
      for (const path of ['etc/hostname', 'slash/etc/hostname', '../x', '/etc/hostname'])
        await failsWith(agent.readFile(path), 'invalid_path')
      await failsWith(agent.writeFile('etc/x', ''), 'invalid_path')
      await failsWith(agent.shell('ls', { cwd: 'etc' }), 'invalid_path')

      const { stdout: there } = await agent.shell('pwd', { cwd: '/workspace/d' })
      assert.equal(there, '/workspace/d\n')

      const snapshot = JSON.parse(JSON.stringify(await agent.snapshot()))
      await agent.resume(snapshot)
      assert.deepEqual((await agent.snapshot()).files, snapshot.files)
      assert.equal((await agent.shell('cat inside/a.txt; printf "$A"')).output, 'hiworkspace')
      assert.equal((await containers()).length, 1)
    },
    'a run in a container is killed with all that it started': async () => {
      await using agent = await startedIn()
      const sleeps = ['sleep 1001 &', 'setsid sleep 1002 &', '(set -m; env -i sleep 1003 &)', 'sleep 1004']
      const { timedOut, exitCode, output } = await agent.shell(`echo before; ${sleeps.join('\n')}`, {
        timeoutSeconds: 1,
      })
      assert.deepEqual([timedOut, exitCode, output], [true, 124, 'before\n'])
      const commands = await agent.shell("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
      assert.doesNotMatch(commands.output, /sleep 100/)
      await assert.rejects(agent.shell('sleep 1005', { signal: AbortSignal.timeout(500) }), {
        name: 'AbortError',
      })
      // When there is no room for another process, the container starts again; the files stay.
      const fork =
        'import os, time\nopen("kept", "w").close()\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(1)'
      assert.equal((await agent.run(fork, { language: 'python', timeoutSeconds: 2 })).exitCode, 124)
      assert.equal((await agent.shell('ls')).output, 'kept\n')
    },
    'the container is removed by close, and when the process that made it is killed': async () => {
      const agent = await startedIn()
      assert.equal((await containers()).length, 1)
      await agent.shell('rm /usr/bin/python3*')
      await failsWith(agent.run('1', { language: 'python' }), 'interpreter_not_found')
      const [container] = await containers()
      await dockerd!.docker(['rm', '--force', container!])
      await failsWith(agent.shell('true'), 'sandbox_lost')
      await agent.close()
      await agent.close()
      assert.deepEqual(await containers(), [])
      const code = `
        import { SandboxAgent } from '@islet/dialects/agentium'
        const agent = new SandboxAgent({ backend: 'docker', dockerImage: '${IMAGE}' })
        await agent.start()
        console.log((await agent.shell('pwd')).output)
        setInterval(() => {}, 1000)`
      const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
        cwd: root,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [said] = await once(child.stdout, 'data')
      assert.equal(String(said).trim(), '/workspace')
      assert.equal((await containers()).length, 1)
      child.kill('SIGKILL')
      await until(async () => (await containers()).length === 0)
      // Its directory is left to the system's cleaning of temporary files, as the guide says.
      for (const left of workspacesThere()) rmSync(left, { recursive: true })
    },
  },
  { skip },
)
