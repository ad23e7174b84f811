import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Sandbox, ServiceInfo } from '@islet/contract/client'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { freePort } from '../../server/test/support/services.ts'
import { islet } from './islet.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'dev' })
})
after(() => api[Symbol.asyncDispose]())

const run = (...words: string[]) => islet(['service', ...words], api)

test('a service is started with all its options, listed, shown and waited for', async () => {
  const port = String(await freePort())
  const { stdout, stderr, exitCode } = await run(
    ...['start', 'dev', 'web', '--install', 'echo installed', '--port', port, '--strict-port', '--cwd', '.'],
    ...[
      '--env',
      'GREETING=it works',
      '--restart',
      'on-failure',
      '--max-restarts',
      '3',
      '--restart-delay',
      '2s',
    ],
    ...['--stop-timeout', '1s', '--health', '/', '--health-interval', '100ms', '--health-timeout', '5s'],
    ...['--no-autostart', '--wait', '--', 'sh', '-c', 'echo "$GREETING"; exec python3 -m http.server $PORT'],
  )
  assert.deepEqual([stdout, exitCode], ['web\n', 0], stderr)
  const shown: ServiceInfo = JSON.parse((await run('info', 'dev', 'web', '--json')).stdout)
  assert.deepEqual(
    [shown.status, shown.port, shown.autostart, shown.restartPolicy, shown.maxRestarts, shown.healthy],
    ['ready', Number(port), false, 'on-failure', 3, true],
  )
  assert.match((await run('ls', 'dev')).stdout, new RegExp(`web +ready +${port} +http`))
  assert.match((await run('info', 'dev', 'web')).stdout, /health +good \(HTTP 200\)/)
  assert.equal((await run('logs', 'dev', 'web', '--install')).stdout, 'installed\n')
  assert.match((await run('logs', 'dev', 'web')).stdout, /^it works\n/)
})

test('its output is followed until it is stopped', async () => {
  const start = 'echo begun; trap "echo stopping; exit" TERM; while :; do sleep 0.01; done'
  assert.equal((await run('start', 'dev', 'talk', start)).stdout, 'talk\n')
  const following = run('logs', 'dev', 'talk', '--follow')
  while ((await run('logs', 'dev', 'talk')).stdout !== 'begun\n');
  assert.equal((await run('stop', 'dev', 'talk')).stdout, 'talk\n')
  const { stdout, exitCode } = await following
  assert.deepEqual([stdout, exitCode], ['begun\nstopping\n', 0])
})

test('it is restarted, removed and completed', async () => {
  assert.equal((await run('restart', 'dev', 'web', '--wait')).stdout, 'web\n')
  const names = (await islet(['__complete', '--', 'service', 'info', 'dev', ''], api)).stdout
  assert.match(names, /^talk\tstopped\n/m)
  assert.equal((await run('rm', 'dev', 'web', 'talk')).stdout, 'web\ntalk\n')
  const empty = await run('ls', 'dev')
  assert.deepEqual([empty.stdout, empty.exitCode], ['', 0])
  assert.match(empty.stderr, new RegExp(`${sandbox.id} has no services`))
})

test('what goes wrong is told with what to do next', async () => {
  const none = await run('stop', 'dev', 'nothing')
  assert.equal(none.exitCode, 1)
  assert.match(none.stderr, /no service nothing[\s\S]*hint: islet service ls/)
  const failed = await run('start', 'dev', 'short', '--wait', '--', 'exit 3')
  assert.match(failed.stderr, /failed, not ready\. It ended with exit code 3[\s\S]*hint: islet service logs/)
  assert.match((await run('start', 'dev', 'x', '--health-delay', '1s', '--', 'true')).stderr, /--health/)
  assert.match((await run('start', 'dev', 'x', '--port', '80', 'true')).stderr, /hint: Put --/)
  assert.match(
    (await run('start', 'dev', 'x', '--dotenv', 'no.env', '--wait', '--', 'true')).stderr,
    /no\.env/,
  )
  assert.equal((await run('start', 'dev', 'x', '--restart', 'maybe', '--', 'true')).exitCode, 2)
})
