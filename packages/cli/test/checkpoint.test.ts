import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { CheckpointInfo, RestoredSandbox, Sandbox } from '@islet/contract/client'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { islet } from './islet.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'dev', env: { KEPT: 'yes' } })
})
after(() => api[Symbol.asyncDispose]())

const run = (...words: string[]) => islet(words, api)
const at = (id: string, rest: string) => `/v1/sandboxes/${id}/${rest}`
const inside = async (id: string, command: string): Promise<string> =>
  ((await (await api.call('POST', at(id, 'exec'), { command })).json()) as { stdout: string }).stdout

test('a checkpoint is made, listed, gone back to by its name and removed', async () => {
  await inside(sandbox.id, 'echo one > file')
  const made = await run('checkpoint', 'create', 'dev', 'before upgrade')
  assert.deepEqual([made.exitCode, made.stderr], [0, ''])
  const id = made.stdout.trim()
  assert.match(id, /^ckp-/)
  await inside(sandbox.id, 'echo two > file')
  const listed: CheckpointInfo[] = JSON.parse((await run('checkpoint', 'ls', 'dev', '--json')).stdout)
  assert.deepEqual(
    listed.map(({ name, sandboxId, memory }) => [name, sandboxId, memory]),
    [['before upgrade', sandbox.id, false]],
  )
  assert.match((await run('checkpoint', 'ls', 'dev')).stdout, new RegExp(`${id} +before upgrade +`))
  assert.equal((await run('checkpoint', 'ls', 'dev', '--quiet')).stdout, `${id}\n`)
  const restored = await run('restore', 'dev', 'before upgrade')
  assert.deepEqual([restored.stdout, restored.exitCode], ['', 0])
  assert.match(restored.stderr, /is restored to before upgrade/)
  assert.equal(await inside(sandbox.id, 'cat file'), 'one\n')
  assert.equal((await run('checkpoint', 'rm', 'dev', id.slice(0, 12))).stdout, `${id}\n`)
  const empty = await run('checkpoint', 'ls', 'dev')
  assert.deepEqual([empty.stdout, empty.exitCode], ['', 0])
  assert.match(empty.stderr, /has no checkpoints\. islet checkpoint create/)
})

test('a restore prints what became of the services', async () => {
  for (const name of ['nap', 'off'])
    await api.call('POST', at(sandbox.id, 'services'), { name, start: 'sleep 600' })
  await api.call('POST', at(sandbox.id, 'services/off/stop'))
  await run('checkpoint', 'create', 'dev', 'serving')
  for (const name of ['nap', 'off']) await api.call('DELETE', at(sandbox.id, `services/${name}`))
  const { stdout } = await run('restore', 'dev', 'serving')
  assert.match(stdout, /^SERVICE +OUTCOME +REASON\nnap +started *\noff +stopped/)
  const json: RestoredSandbox = JSON.parse((await run('restore', 'dev', 'serving', '--json')).stdout)
  assert.deepEqual(json.sandbox.id, sandbox.id)
  assert.deepEqual(
    json.services.map(({ name, outcome }) => [name, outcome]),
    [
      ['nap', 'started'],
      ['off', 'stopped'],
    ],
  )
})

test('a sandbox begins as a checkpoint, with what is given instead', async () => {
  await inside(sandbox.id, 'echo saved > file')
  const id = (await run('checkpoint', 'create', 'dev', 'base')).stdout.trim()
  const made = await run(
    'create',
    '--checkpoint',
    id,
    '--name',
    'copy',
    '--env',
    'MORE=1',
    '--idle-timeout',
    '7m',
  )
  assert.equal(made.exitCode, 0, made.stderr)
  assert.equal(await inside(made.stdout.trim(), 'cat file; echo $KEPT $MORE'), 'saved\nyes 1\n')
  const info = (await (await api.call('GET', `/v1/sandboxes/${made.stdout.trim()}`)).json()) as Sandbox
  assert.deepEqual([info.origin, info.timeouts.idleMs], [{ kind: 'checkpoint', id }, 420_000])
  assert.equal((await run('create', '--checkpoint', id, '--runtime', 'host')).exitCode, 2)
})

test('a sandbox is forked, once and several times', async () => {
  await inside(sandbox.id, 'echo parent > file')
  const one = await run('fork', 'dev', '--name', 'child', '--env', 'ROLE=worker')
  assert.equal(one.exitCode, 0, one.stderr)
  assert.equal(await inside(one.stdout.trim(), 'cat file; echo $KEPT $ROLE'), 'parent\nyes worker\n')
  const many = await run('fork', 'dev', '--count', '3', '--json')
  const { forks, frozenMs } = JSON.parse(many.stdout)
  assert.equal(typeof frozenMs, 'number')
  const ids = forks.map((fork: { ok: true; sandbox: Sandbox }) => fork.sandbox.id)
  assert.equal(new Set([...ids, sandbox.id]).size, 4)
  const bad = await run('fork', 'dev', '--user', 'nobody-of-that-name')
  assert.deepEqual([bad.exitCode, bad.stdout], [1, ''])
  assert.match(bad.stderr, /hint: /)
})

test('what goes wrong is told with what to do next, and names are completed', async () => {
  const none = await run('restore', 'dev', 'nothing')
  assert.equal(none.exitCode, 1)
  assert.match(none.stderr, /no checkpoint nothing[\s\S]*hint: islet checkpoint ls/)
  await api.call('POST', at(sandbox.id, 'checkpoints'), { name: 'twice' })
  const taken = await run('checkpoint', 'create', 'dev', 'twice')
  assert.equal(taken.exitCode, 1)
  assert.match(taken.stderr, /has a checkpoint 'twice' already[\s\S]*hint: /)
  const unknown = await run('create', '--checkpoint', 'ckp-00000000000000000000')
  assert.match(unknown.stderr, /hint: islet checkpoint ls/)
  const gone = await api.createSandbox({ name: 'short' })
  const { id } = (await (
    await api.call('POST', at(gone.id, 'checkpoints'), { name: 'left' })
  ).json()) as CheckpointInfo
  await api.call('DELETE', `/v1/sandboxes/${gone.id}`)
  const all = await run('checkpoint', 'ls')
  assert.match(all.stdout, new RegExp(`^ID +SANDBOX +NAME.*\\n${id} +${gone.id} +left `))
  assert.match(all.stdout, new RegExp(`^ckp-\\w+ +${sandbox.id} +twice `, 'm'))
  const values = (await run('__complete', '--', 'create', '--checkpoint', 'ckp-')).stdout
  assert.match(values, new RegExp(`^${id}\\tleft of ${gone.id}$`, 'm'))
  const names = (await run('__complete', '--', 'restore', 'dev', 't')).stdout
  assert.match(names, /^twice\tckp-/)
})
