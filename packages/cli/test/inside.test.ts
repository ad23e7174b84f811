// Programs in a sandbox and how to reach them: code, services, ports, previews, signals, the store.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { CodeResult, Sandbox, ServiceInfo } from '@islet/contract/client'
import { startTestApi, type TestApi, until } from '../../server/test/support/server.ts'
import { freePort } from '../../server/test/support/services.ts'
import { SignalClient } from '../../server/test/support/signal-client.ts'
import { islet } from './islet.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'dev' })
})
after(() => api[Symbol.asyncDispose]())

const run = (...words: string[]) => islet(words, api)
const stdoutOf = async (...words: string[]) => (await run(...words)).stdout

describe('code', () => {
  /** Finds the Node that runs this test, which runs TypeScript. */
  const PATH = `PATH=${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`

  test('from stdin runs in its language, with its output and exit code', async () => {
    const stdin = 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nsys.exit(3)\n'
    const ran = await islet(['code', 'dev'], { ...api, stdin })
    assert.deepEqual([ran.stdout, ran.stderr, ran.exitCode], ['out\n', 'err\n', 3])
    const told = await islet(['code', 'dev', '-', '-l', 'shell', '-e', 'A=b'], { ...api, stdin: 'echo $A' })
    assert.equal(told.stdout, 'b\n')
  })

  test('from a file runs in the language of its extension, unless another is given', async () => {
    const ran = async (name: string, text: string, ...flags: string[]) => {
      const file = join(api.dataDir, name)
      writeFileSync(file, text)
      const { stdout, stderr } = await run('code', 'dev', file, '--json', '-e', PATH, ...flags)
      assert.notEqual(stdout, '', stderr)
      const { language, output } = JSON.parse(stdout) as CodeResult
      return [language, output]
    }
    const shell = 'print() { echo "shell $1"; }; print 1\n'
    assert.deepEqual(await ran('script.sh', shell), ['shell', 'shell 1\n'])
    assert.deepEqual(await ran('a.mts', 'const x: number = 2\nconsole.log(x)'), ['typescript', '2\n'])
    assert.deepEqual(await ran('a.cts', 'console.log(require.name)'), ['typescript', 'require\n'])
    assert.deepEqual(await ran('b.ts', 'print(4)', '-l', 'py'), ['python', '4\n'])
  })

  test('that cannot run fails with the reason', async () => {
    const missing = await run('code', 'dev', '/no/such/file.py')
    assert.equal(missing.exitCode, 125)
    assert.match(missing.stderr, /cannot be read[\s\S]*hint: /)
    const path = `PATH=${sandbox.workdir}`
    const none = await islet(['code', 'dev', '-l', 'bun', '-e', path], { ...api, stdin: '1' })
    assert.equal(none.exitCode, 127)
    assert.match(none.stderr, /has no bun[\s\S]*hint: /)
    assert.match((await islet(['code', 'dev'], { ...api, stdin: '' })).stderr, /code is empty/)
  })
})

describe('service', () => {
  const service = (...words: string[]) => run('service', ...words)

  test('start takes all options and waits; ls, info and logs show the service', async () => {
    const port = String(await freePort())
    const { stdout, stderr, exitCode } = await service(
      ...`start dev web --port ${port} --strict-port --cwd . --restart on-failure --max-restarts 3`.split(
        ' ',
      ),
      ...'--restart-delay 2s --stop-timeout 1s --health / --health-interval 100ms'.split(' '),
      ...['--health-timeout', '5s', '--no-autostart', '--wait', '--install', 'echo installed'],
      ...['--env', 'GREETING=it works', '--'],
      ...['sh', '-c', 'echo "$GREETING"; exec python3 -m http.server $PORT'],
    )
    assert.deepEqual([stdout, exitCode], ['web\n', 0], stderr)
    const shown: ServiceInfo = JSON.parse((await service('info', 'dev', 'web', '--json')).stdout)
    assert.deepEqual(
      [shown.status, shown.port, shown.autostart, shown.restartPolicy, shown.maxRestarts, shown.healthy],
      ['ready', Number(port), false, 'on-failure', 3, true],
    )
    assert.match((await service('ls', 'dev')).stdout, new RegExp(`web +ready +${port} +http`))
    assert.match((await service('info', 'dev', 'web')).stdout, /health +good \(HTTP 200\)/)
    assert.equal((await service('logs', 'dev', 'web', '--install')).stdout, 'installed\n')
    assert.match((await service('logs', 'dev', 'web')).stdout, /^it works\n/)
  })

  test('logs --follow prints the output until the service is stopped', async () => {
    const start = 'trap "echo stopping; exit" TERM; echo begun; while :; do sleep 0.01; done'
    assert.equal((await service('start', 'dev', 'talk', start)).stdout, 'talk\n')
    const following = service('logs', 'dev', 'talk', '--follow')
    const answer = await api.call('GET', `/v1/sandboxes/${sandbox.id}/services/talk`)
    const { processId } = (await answer.json()) as ServiceInfo
    await until(async () => (await api.process(sandbox.id, processId!)).outputBytes > 0)
    assert.equal((await service('stop', 'dev', 'talk')).stdout, 'talk\n')
    const { stdout, exitCode } = await following
    assert.deepEqual([stdout, exitCode], ['begun\nstopping\n', 0])
  })

  test('restart and rm work, and names are completed', async () => {
    assert.equal((await service('restart', 'dev', 'web', '--wait')).stdout, 'web\n')
    assert.match(await stdoutOf('__complete', '--', 'service', 'info', 'dev', ''), /^talk\tstopped\n/m)
    assert.equal((await service('rm', 'dev', 'web', 'talk')).stdout, 'web\ntalk\n')
    const empty = await service('ls', 'dev')
    assert.deepEqual([empty.stdout, empty.exitCode], ['', 0])
    assert.match(empty.stderr, new RegExp(`${sandbox.id} has no services`))
  })

  test('a failure has a hint', async () => {
    const none = await service('stop', 'dev', 'nothing')
    assert.equal(none.exitCode, 1)
    assert.match(none.stderr, /no service nothing[\s\S]*hint: islet service ls/)
    const failed = await service('start', 'dev', 'short', '--wait', '--', 'exit 3')
    assert.match(
      failed.stderr,
      /failed, not ready\. It ended with exit code 3[\s\S]*hint: islet service logs/,
    )
    const noFile = await service('start', 'dev', 'x', '--dotenv', 'no.env', '--wait', '--', 'true')
    assert.match(noFile.stderr, /no\.env/)
  })
})

describe('signals', () => {
  test('are sent, and printed by all listeners until they are stopped', async () => {
    const listening = run('signals', 'dev')
    const json = run('signals', 'dev', '--json')
    const other = await SignalClient.open(
      `${api.url.replace('http', 'ws')}/v1/sandboxes/${sandbox.id}/signals`,
    )
    const isOpened = (line: string) => line.includes('socket opened') && line.includes('/signals')
    await until(() => api.logged.filter(isOpened).length === 3)
    for (const words of [
      ['port', '3000', 'open'],
      ['server-ready', '3000', 'http://localhost:3000'],
      ['error', 'two', 'lines\nand \x1b[31mred'],
      ['build.done', '{"files": 3}'],
      ['bare'],
    ]) {
      assert.deepEqual(await run('signal', 'dev', ...words), { exitCode: 0, stdout: '', stderr: '' })
    }
    await until(() => other.events.length === 5)
    await api.call('POST', `/v1/sandboxes/${sandbox.id}/signals/stop`)
    const { exitCode, stdout, stderr } = await listening
    assert.equal(exitCode, 0, stderr)
    assert.deepEqual(stdout.split('\n'), [
      'port 3000 open http://127.0.0.1:3000',
      'server-ready 3000 http://localhost:3000',
      'error two lines\\x0aand \\x1b[31mred',
      'build.done {"files":3}',
      'bare',
      '',
    ])
    assert.match(stderr, /Listening to sbx-/)
    const lines = (await json).stdout.trim().split('\n')
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      other.events,
    )
  })

  test('the server refuses a name with capitals', async () => {
    const { exitCode, stderr } = await run('signal', 'dev', 'Upper')
    assert.equal(exitCode, 1)
    assert.match(stderr, /lower-case/)
  })
})

test('ports lists what listens', async () => {
  const none = await run('ports', 'dev')
  assert.deepEqual([none.exitCode, none.stdout], [0, ''])
  assert.match(none.stderr, /Nothing listens/)
  const command = ['/usr/bin/python3', '-u', '-m', 'http.server', '0', '--bind', '127.0.0.1']
  const { pid } = await api.start(sandbox.id, { command })
  await until(async () => {
    const { ports } = (await (await api.call('GET', `/v1/sandboxes/${sandbox.id}/ports`)).json()) as {
      ports: unknown[]
    }
    return ports.length === 1
  })
  const [found] = JSON.parse(await stdoutOf('ports', 'dev', '--json'))
  assert.deepEqual([found.address, found.pid], ['127.0.0.1', pid])
  assert.match(await stdoutOf('ports', 'dev'), /^PORT +ADDRESS +UID +PID\n\d+ +127\.0\.0\.1 /)
  assert.equal(await stdoutOf('ports', 'dev', '-q'), `${found.port}\n`)
})

describe('preview', () => {
  const preview = (...words: string[]) => run('preview', ...words)
  // Its own sandbox: a service of `dev` has a preview too.
  before(() => api.createSandbox({ name: 'app' }))

  test('prints the URL of a port, ls lists it and rm removes it', async () => {
    const made = await preview('app', '3000')
    assert.match(made.stdout, /^http:\/\/127\.0\.0\.1:\d+\n$/)
    assert.equal(made.stderr, '')
    assert.equal((await preview('app', '3000')).stdout, made.stdout)
    const table = await preview('ls', 'app')
    assert.match(table.stdout, /^PORT +URL +ASKS FOR +AGE\n3000 +http:\/\/127\.0\.0\.1:\d+ +- /)
    const [listed] = JSON.parse((await preview('ls', 'app', '--json')).stdout)
    assert.equal(`${listed.url}\n`, made.stdout)
    assert.equal((await preview('rm', 'app', '3000')).stdout, '3000\n')
    const gone = await preview('rm', 'app', '3000')
    assert.equal(gone.exitCode, 1)
    assert.match(gone.stderr, /hint: islet preview ls/)
    assert.match((await preview('ls', 'app')).stderr, /no previews/)
  })

  test('create, fork, update and info know the port that a sandbox has a URL of', async () => {
    const made = await run('create', '--name', 'served', '--port', '3000')
    assert.match(made.stdout, /^sbx-\w+\n$/)
    const url = made.stderr.trim()
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.match(await stdoutOf('info', 'served'), new RegExp(`url +${url} \\(port 3000\\)\n`))
    const [fork] = JSON.parse(await stdoutOf('fork', 'served', '--port', '4000', '--json')).forks
    assert.equal(fork.sandbox.network.port, 4000)
    const changed = JSON.parse(await stdoutOf('update', 'served', '--no-port', '--json'))
    assert.deepEqual([changed.network.port, changed.url], [null, null])
    assert.doesNotMatch(await stdoutOf('info', 'served'), /url/)
    const beyond = await run('create', '--port', '65536')
    assert.deepEqual([beyond.exitCode, beyond.stdout], [1, ''])
    assert.match(beyond.stderr, /network\.port/)
    for (const id of ['served', fork.sandbox.id]) await run('rm', id)
  })

  test('--token prints a token once, and a second call keeps the preview private', async () => {
    const [url, token] = (await preview('app', '3001', '--token')).stdout.split('\n')
    assert.match(token!, /^[\w-]{43}$/)
    assert.equal((await preview('app', '3001')).stdout, `${url}\n`)
    assert.equal((await fetch(url!)).status, 401)
    assert.notEqual((await fetch(url!, { headers: { Authorization: `Bearer ${token}` } })).status, 401)
    const named = JSON.parse((await preview('app', '3001', '--domain', 'app.example.org', '--json')).stdout)
    assert.equal(named.domain, 'app.example.org')
    assert.equal((await preview('app', '99999')).exitCode, 1)
  })
})

describe('store', () => {
  const store = (...words: string[]) => run('store', ...words)
  const piped = (stdin: string, ...words: string[]) => islet(['store', ...words], { ...api, stdin })

  test('values are set, printed, listed and deleted', async () => {
    const set = await store('set', 'dev', 'progress', '{"step": 3}', '--ttl', '1h')
    assert.deepEqual([set.exitCode, set.stdout, set.stderr], [0, '', ''])
    assert.deepEqual(JSON.parse((await store('get', 'dev', 'progress')).stdout), { step: 3 })
    const entry = JSON.parse((await store('get', 'dev', 'progress', '--json')).stdout)
    assert.ok(Math.abs(Date.parse(entry.expires_at) - Date.now() - 3_600_000) < 60_000)
    await store('set', 'dev', 'status', '--string', 'it is busy')
    assert.equal((await store('get', 'dev', 'status', '--string')).stdout, 'it is busy\n')
    assert.equal((await store('get', 'dev', 'status')).stdout, '"it is busy"\n')
    await piped('[1, 2]', 'set', 'dev', '..')
    await piped('text', 'set', 'dev', 'two\nlines', '-', '--string')
    assert.equal((await store('ls', 'dev')).stdout, '..\nprogress\nstatus\n"two\\nlines"\n')
    assert.equal((await store('ls', 'dev', 'pro')).stdout, 'progress\n')
    const some = await store('ls', 'dev', '--limit', '1')
    assert.equal(some.stdout, '..\n')
    const [, cursor] = /--cursor (\S+)/.exec(some.stderr) ?? []
    const next = await store('ls', 'dev', '--limit', '1', '--cursor', cursor!)
    assert.equal(next.stdout, 'progress\n')
    assert.equal((await store('rm', 'dev', 'status', 'nope', '..')).stdout, 'status\n..\n')
    assert.deepEqual(JSON.parse((await store('rm', 'dev', 'status', '--json')).stdout), [])
  })

  test('a batch comes from stdin or from a file', async () => {
    const operations = JSON.stringify([
      { op: 'set', key: 'a', value: 1 },
      { op: 'delete', key: 'b' },
    ])
    assert.equal((await piped(operations, 'batch', 'dev')).stdout, '2\n')
    const path = join(api.dataDir, 'operations.json')
    writeFileSync(path, operations)
    assert.deepEqual(JSON.parse((await store('batch', 'dev', path, '--json')).stdout), {
      applied: 2,
      ok: true,
    })
  })

  test('a failure has a hint', async () => {
    const missing = await store('get', 'dev', 'missing')
    assert.deepEqual([missing.exitCode, missing.stdout], [1, ''])
    assert.match(missing.stderr, /hint: islet store ls/)
    const json = await store('get', 'dev', 'missing', '--json')
    assert.equal(JSON.parse(json.stderr).error.code, 'key_not_found')
    const empty = await store('batch', 'dev', '-')
    assert.equal(empty.exitCode, 2)
    assert.match(empty.stderr, /hint:/)
    assert.equal((await store('batch', 'dev', '/nope/nope.json')).exitCode, 1)
    assert.equal((await piped('[{"op": "set", "key": "x"}]', 'batch', 'dev')).exitCode, 1)
  })
})
