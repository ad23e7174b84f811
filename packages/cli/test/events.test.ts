import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PatchInfo, PatchRun, SandboxEvent } from '@islet/contract/client'
import { startTestApi, type TestApi, until } from '../../server/test/support/server.ts'
import { islet } from './islet.ts'

let api: TestApi
let id: string
before(async () => {
  api = await startTestApi()
  id = (await api.createSandbox({ name: 'dev' })).id
})
after(() => api[Symbol.asyncDispose]())

const run = (words: string[], stdin?: string) => islet(words, { url: api.url, stdin })
const done = async (words: string[], stdin?: string) => {
  const { exitCode, stdout, stderr } = await run(words, stdin)
  assert.equal(exitCode, 0, stderr)
  return stdout
}

test('events are printed a line each, oldest first, or as JSON', async () => {
  const lines = (await done(['events', 'dev'])).trim().split('\n')
  assert.match(lines[0]!, /^\d{4}-\d\d-\d\dT[\d:.]+Z {2}\d+ {2}created {2}runtime=host$/)
  assert.match(lines[1]!, / started$/)
  const events = JSON.parse(await done(['events', 'dev', '--json'])) as SandboxEvent[]
  assert.deepEqual(
    events.map(({ type }) => type),
    ['created', 'started'],
  )
  const last = JSON.parse(await done(['events', 'dev', '--json', '-n', '1'])) as SandboxEvent[]
  assert.deepEqual(last, events.slice(1))
  assert.equal(await done(['events', 'dev', '--type', 'created', '--since', '1h']), `${lines[0]}\n`)
  const none = await run(['events', 'dev', '--since', events[1]!.id])
  assert.deepEqual([none.exitCode, none.stdout], [0, ''])
  for (const words of [
    ['--type', 'unheard'],
    ['--since', 'noon'],
    ['--limit', 'x'],
  ]) {
    const refused = await run(['events', 'dev', ...words])
    assert.equal(refused.exitCode, 2)
    assert.match(refused.stderr, /hint:/)
  }
})

test('the words of a command are told apart', async () => {
  await done(['exec', 'dev', '--', 'echo', 'a b', 'c'])
  const line = await done(['events', 'dev', '--type', 'process.started'])
  assert.match(line, / {2}command=\["echo","a b","c"\]\n$/)
})

test('--follow goes on with what happens, until the sandbox is gone', async () => {
  const { id: other } = await api.createSandbox({ name: 'short' })
  const following = run(['events', 'short', '--follow', '--json', '-n', '1'])
  await until(() => api.logged.some((line) => line.includes(`/v1/sandboxes/${other}/events`)))
  await api.call('DELETE', `/v1/sandboxes/${other}`)
  const { exitCode, stdout, stderr } = await following
  assert.equal(exitCode, 0, stderr)
  const types = stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as SandboxEvent).type)
  assert.equal(types.at(-1), 'stopped')
  assert.match(await done(['events', other]), /started\n.*stopped\n$/)
})

test('patches of a checkpoint are added, listed, followed up and removed', async () => {
  const checkpointId = (await done(['checkpoint', 'create', 'dev', 'base'])).trim()
  const none = await run(['checkpoint', 'patch', 'ls', checkpointId])
  assert.deepEqual([none.exitCode, none.stdout], [0, ''])
  const first = (
    await done(['checkpoint', 'patch', 'add', checkpointId, '-', '-d', 'log it'], 'echo 1 >> log')
  ).trim()
  assert.match(first, /^pat-/)
  const words = ['checkpoint', 'patch', 'add', checkpointId, '-', '--json']
  const second = JSON.parse(await done(words, 'echo no; exit 4')) as PatchInfo
  assert.match(
    await done(['checkpoint', 'patch', 'ls', checkpointId]),
    /^ID +SIZE +AGE +DESCRIPTION\npat-\w+ +13 B +\w+ +log it\npat-/,
  )
  assert.equal(await done(['checkpoint', 'patch', 'ls', checkpointId, '-q']), `${first}\n${second.id}\n`)
  const response = await api.call('POST', `/v1/checkpoints/${checkpointId}/sandboxes`, { name: 'made' })
  assert.equal(response.status, 201)
  const table = await done(['checkpoint', 'patch', 'runs', 'made'])
  assert.match(
    table,
    /^PATCH +STATUS +AGE +REASON\npat-\w+ +applied \(0\) .*\npat-\w+ +failed \(4\) .* no\n$/,
  )
  const runs = JSON.parse(await done(['checkpoint', 'patch', 'runs', 'made', '--json'])) as PatchRun[]
  assert.equal(runs[1]!.output, 'no\n')
  assert.equal(
    await done(['checkpoint', 'patch', 'rm', checkpointId, first, second.id]),
    `${first}\n${second.id}\n`,
  )
  const gone = await run(['checkpoint', 'patch', 'rm', checkpointId, first])
  assert.equal(gone.exitCode, 1)
  assert.match(gone.stderr, /no such patch/)
  const empty = await run(['checkpoint', 'patch', 'add', checkpointId, '-'], '')
  assert.equal(empty.exitCode, 1)
  const missing = await run(['checkpoint', 'patch', 'add', checkpointId, './not-there.sh'])
  assert.equal(missing.exitCode, 1)
  assert.match(missing.stderr, /not-there.sh/)
  assert.ok(id)
})
