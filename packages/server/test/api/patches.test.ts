import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  type CheckpointInfo,
  type CreatedSandbox,
  type ExecResult,
  type Forks,
  LIMITS,
  type PatchInfo,
  type PatchRun,
  type SandboxEvent,
  type ServiceInfo,
  type WokenSandbox,
} from '@islet/contract'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(() => api[Symbol.asyncDispose]())

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await api.call(method, path, body)
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`)
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T)
}

async function checkpoint(): Promise<string> {
  const { id } = await api.createSandbox({ env: { GREETING: 'hello' } })
  const { id: checkpointId } = await save(id)
  return checkpointId
}
let saves = 0
const save = (id: string) =>
  ask<CheckpointInfo>('POST', `/v1/sandboxes/${id}/checkpoints`, { name: `at-${++saves}` })
const patch = (checkpointId: string, script: string, description?: string) =>
  ask<PatchInfo>('POST', `/v1/checkpoints/${checkpointId}/patches`, { script, description })
const unpatch = (checkpointId: string, id: string) =>
  ask('DELETE', `/v1/checkpoints/${checkpointId}/patches/${id}`)
const make = (checkpointId: string) =>
  ask<CreatedSandbox>('POST', `/v1/checkpoints/${checkpointId}/sandboxes`, {})
const runs = async (id: string) =>
  (await ask<{ patches: PatchRun[] }>('GET', `/v1/sandboxes/${id}/patches`)).patches
const exec = async (id: string, command: string) =>
  (await ask<ExecResult>('POST', `/v1/sandboxes/${id}/exec`, { command })).stdout
const hibernate = (id: string) => ask('POST', `/v1/sandboxes/${id}/hibernate`)
const wake = (id: string) => ask<WokenSandbox>('POST', `/v1/sandboxes/${id}/wake`, {})
const statuses = (list: readonly PatchRun[] = []) => list.map(({ status }) => status)
const events = async (id: string) =>
  (await ask<{ events: SandboxEvent[] }>('GET', `/v1/sandboxes/${id}/events?direction=asc`)).events.filter(
    ({ type }) => type.startsWith('patch.'),
  )

test('patches belong to a checkpoint, in their order, and can be taken away', async () => {
  const id = await checkpoint()
  const one = await patch(id, 'true', 'the first')
  const two = await patch(id, 'false')
  assert.deepEqual(
    [one.sequence, one.description, two.description, one.checkpointId],
    [1, 'the first', null, id],
  )
  const list = () => ask<{ patches: PatchInfo[] }>('GET', `/v1/checkpoints/${id}/patches`)
  assert.deepEqual((await list()).patches, [one, two])
  await unpatch(id, one.id)
  assert.deepEqual((await list()).patches, [two])
  const again = await api.call('DELETE', `/v1/checkpoints/${id}/patches/${one.id}`)
  assert.equal((await errorOf(again)).code, 'patch_not_found')
  const elsewhere = await api.call('DELETE', `/v1/checkpoints/${await checkpoint()}/patches/${two.id}`)
  assert.equal((await errorOf(elsewhere)).code, 'patch_not_found')
  for (const body of [{ script: '' }, { script: 'a\0b' }, { script: 'x'.repeat(256 * 1024 + 1) }, {}]) {
    const refused = await api.call('POST', `/v1/checkpoints/${id}/patches`, body)
    assert.equal((await errorOf(refused)).code, 'bad_request')
  }
  const nowhere = await api.call('POST', '/v1/checkpoints/cpt-00000000000000000000/patches', {
    script: 'true',
  })
  assert.equal((await errorOf(nowhere)).code, 'checkpoint_not_found')
})

test('they are bounded', async () => {
  const id = await checkpoint()
  for (let count = 0; count < LIMITS.patches; count++) await patch(id, 'true')
  const response = await api.call('POST', `/v1/checkpoints/${id}/patches`, { script: 'true' })
  assert.equal((await errorOf(response)).code, 'limit_exceeded')
})

test('a sandbox made from the checkpoint is answered with all of them applied, in order, as root and in its directory', async () => {
  const id = await checkpoint()
  const first = await patch(
    id,
    '#!/bin/bash\necho "one $GREETING $(id -un) $#" >> log\nread line || echo nothing to read',
  )
  const second = await patch(
    id,
    `set -euo pipefail\nwords=(a b c)\necho "two \${words[2]}" >> log\necho told >&2`,
  )
  const sandbox = await make(id)
  assert.deepEqual(
    sandbox.patches?.map(({ patchId, status, exitCode, output, reason }) => [
      patchId,
      status,
      exitCode,
      output,
      reason,
    ]),
    [
      [first.id, 'applied', 0, 'nothing to read\n', null],
      [second.id, 'applied', 0, 'told\n', null],
    ],
  )
  assert.equal(await exec(sandbox.id, 'cat log'), 'one hello root 0\ntwo c\n')
  assert.deepEqual(
    (await events(sandbox.id)).map(({ type, data }) => [type, data.patchId]),
    [
      ['patch.applied', first.id],
      ['patch.applied', second.id],
    ],
  )
  await hibernate(sandbox.id)
  assert.deepEqual(statuses((await wake(sandbox.id)).patches), ['applied', 'applied'])
  assert.equal(await exec(sandbox.id, 'cat log'), 'one hello root 0\ntwo c\n', 'once each')
})

test('a patch added later is applied when the sandbox wakes, before the call that woke it', async () => {
  const id = await checkpoint()
  const { id: sandboxId, patches } = await make(id)
  assert.equal(patches, undefined)
  const { id: patchId } = await patch(id, 'sleep 0.5; echo late >> log')
  assert.deepEqual(await runs(sandboxId), [
    { patchId, status: 'pending', exitCode: null, output: '', reason: null, at: null },
  ])
  await hibernate(sandboxId)
  const logs = await Promise.all(Array.from({ length: 5 }, () => exec(sandboxId, 'cat log')))
  assert.deepEqual(logs, Array(5).fill('late\n'))
  assert.deepEqual(statuses(await runs(sandboxId)), ['applied'])
  assert.equal((await events(sandboxId)).length, 1)
})

test('a failed patch is reported with its exit code and output, and blocks later patches until it is deleted', async () => {
  const id = await checkpoint()
  const good = await patch(id, 'echo good >> log')
  const bad = await patch(id, 'echo before the end; cd /not/there; exit 7')
  const blocked = await patch(id, 'echo after >> log')
  const sandbox = await make(id)
  const [, failed] = sandbox.patches!
  assert.deepEqual(statuses(sandbox.patches), ['applied', 'failed', 'pending'])
  assert.equal(failed!.exitCode, 7)
  assert.match(failed!.output, /before the end\n.*line 1: cd: \/not\/there/)
  assert.deepEqual(
    (await events(sandbox.id)).map(({ type, data }) => [type, data.patchId, data.exitCode]),
    [
      ['patch.applied', good.id, undefined],
      ['patch.failed', bad.id, 7],
    ],
  )
  await hibernate(sandbox.id)
  assert.deepEqual(
    statuses((await wake(sandbox.id)).patches),
    ['applied', 'failed', 'pending'],
    'not run again',
  )
  assert.equal((await events(sandbox.id)).length, 2)
  await unpatch(id, bad.id)
  await unpatch(id, good.id)
  await hibernate(sandbox.id)
  const after = await wake(sandbox.id)
  assert.deepEqual(
    after.patches?.map(({ patchId, status }) => [patchId, status]),
    [
      [good.id, 'applied'],
      [bad.id, 'failed'],
      [blocked.id, 'applied'],
    ],
  )
  assert.equal(await exec(sandbox.id, 'cat log'), 'good\nafter\n', 'what was applied stays')
})

test('the end of its output is kept', async () => {
  const id = await checkpoint()
  await patch(id, 'for i in $(seq 40000); do echo "line $i é"; done; exit 1')
  const [run] = (await make(id)).patches!
  assert.ok(Buffer.byteLength(run!.output) <= LIMITS.patchOutputBytes)
  assert.ok(Buffer.byteLength(run!.output) > LIMITS.patchOutputBytes - 4)
  assert.ok(run!.output.endsWith('line 40000 é\n'))
  assert.ok(!run!.output.includes('\ufffd'))
})

test('a script as large as may be arrives whole', async () => {
  const id = await checkpoint()
  const text = 'x'.repeat(LIMITS.patchScriptBytes - 100)
  await patch(id, `text='${text}'\necho -n "\${#text}"`)
  const [run] = (await make(id)).patches!
  assert.deepEqual([run!.status, run!.output], ['applied', String(text.length)])
})

test('a patch that is killed, or removes its shell, has failed with a reason', async () => {
  const id = await checkpoint()
  await patch(id, 'kill -9 $$')
  const [run] = (await make(id)).patches!
  assert.deepEqual([run!.status, run!.exitCode, run!.reason], ['failed', 137, 'It was ended by SIGKILL.'])
})

test('forks and checkpoints keep the applied patches; a restore resets them', async () => {
  const id = await checkpoint()
  const sandbox = await make(id)
  const before = await save(sandbox.id)
  await patch(id, 'echo once >> log')
  await hibernate(sandbox.id)
  await wake(sandbox.id)
  const { forks } = await ask<Forks>('POST', `/v1/sandboxes/${sandbox.id}/fork`, {})
  const fork = forks[0]!
  assert.ok(fork.ok)
  assert.deepEqual(statuses(fork.sandbox.patches), ['applied'])
  assert.equal(await exec(fork.sandbox.id, 'cat log'), 'once\n')
  // A fork continues with the patches of the checkpoint that its source was made from.
  await patch(id, 'echo more >> log')
  await hibernate(fork.sandbox.id)
  assert.deepEqual(statuses((await wake(fork.sandbox.id)).patches), ['applied', 'applied'])
  assert.equal(await exec(fork.sandbox.id, 'cat log'), 'once\nmore\n')
  // Back then nothing was applied: the restore brings the sandbox up to date again.
  await ask('POST', `/v1/sandboxes/${sandbox.id}/checkpoints/${before.id}/restore`)
  assert.deepEqual(statuses(await runs(sandbox.id)), ['applied', 'applied'])
  assert.equal(await exec(sandbox.id, 'cat log'), 'once\nmore\n')
  // A checkpoint of it has patches of its own.
  const own = await save(sandbox.id)
  await patch(own.id, 'echo own >> log')
  const child = await make(own.id)
  assert.equal(await exec(child.id, 'cat log'), 'once\nmore\nown\n')
})

test('deleting the checkpoint deletes its patches and leaves the sandboxes made from it alone', async () => {
  const { id: source } = await api.createSandbox()
  const { id } = await save(source)
  await patch(id, 'echo here >> log')
  const sandbox = await make(id)
  await patch(id, 'echo never >> log')
  await ask('DELETE', `/v1/sandboxes/${source}/checkpoints/${id}`)
  assert.equal(
    (await errorOf(await api.call('GET', `/v1/checkpoints/${id}/patches`))).code,
    'checkpoint_not_found',
  )
  await hibernate(sandbox.id)
  assert.deepEqual(statuses((await wake(sandbox.id)).patches), ['applied'])
  assert.equal(await exec(sandbox.id, 'cat log'), 'here\n')
})

test('services start when the patches are done', async () => {
  const { id: source } = await api.createSandbox()
  await ask('POST', `/v1/sandboxes/${source}/services`, {
    name: 'web',
    start: 'echo "service sees: $(cat log 2>/dev/null)"; exec sleep 600',
  })
  const started = async (id: string) =>
    (await ask<ServiceInfo>('GET', `/v1/sandboxes/${id}/services/web?wait=60000&status=running`)).status
  assert.equal(await started(source), 'running')
  const { id } = await save(source)
  await patch(id, 'sleep 1; echo patched >> log')
  const sandbox = await make(id)
  assert.equal(await started(sandbox.id), 'running')
  await until(async () => {
    const logs = await ask<{ stdout: string }>('GET', `/v1/sandboxes/${sandbox.id}/services/web/logs`)
    assert.ok(!logs.stdout.includes('sees: \n'), 'it did not run before')
    return logs.stdout === 'service sees: patched\n'
  })
})

test('a patch that cannot be started has failed, and says why', async () => {
  const source = await api.createSandbox({ env: { PATH: '/nowhere' } })
  const { id } = await save(source.id)
  await patch(id, 'true')
  const { patches } = await make(id)
  assert.deepEqual(statuses(patches), ['failed'])
  assert.equal(patches?.[0]?.reason, 'There is no bash in the sandbox.')
})

test('a sandbox that is deleted while it is patched is gone', async () => {
  const id = await checkpoint()
  await patch(id, 'echo $$ > running; sleep 600')
  const making = api.call('POST', `/v1/checkpoints/${id}/sandboxes`, { name: 'doomed' })
  let doomed = ''
  await until(async () => {
    const { sandboxes } = await ask<{ sandboxes: { id: string }[] }>('GET', '/v1/sandboxes?name=doomed')
    doomed = sandboxes[0]?.id ?? ''
    return doomed !== '' && statuses(await runs(doomed))[0] === 'running'
  })
  await ask('DELETE', `/v1/sandboxes/${doomed}`)
  await making
  assert.deepEqual(statuses(await runs(doomed)), ['failed'])
})
