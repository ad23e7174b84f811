import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { PatchRun, Sandbox, SandboxEvent } from 'islet'
import { until } from '../coming-from/until.ts'
import { slotOf } from '../support/leftovers.ts'
import type { TestServer } from '../support/server.ts'
import { say } from '../support/shell.ts'
import { assertNoLeak, killCells, withServer } from './crash.ts'

/** Milliseconds after the request: before anything, in the midst of the first patch, and of those after it. */
const MOMENTS = [0, 60, 150, 300, 500, 800]
const PATCHES = 4

test('whenever the server is killed, each patch is applied once, in order, in whatever is there', async () => {
  await withServer(async (server) => {
    const { checkpointId, source } = await patched(server)
    for (const [index, moment] of MOMENTS.entries()) {
      const name = `made-${index}`
      const making = server
        .islet()
        .checkpoints.createSandbox(checkpointId, { name, idempotencyKey: `${name}-key` })
        .catch(() => undefined)
      await setTimeout(moment)
      await server.kill()
      await making
      await server.start()
      const islet = server.islet()
      const { sandboxes } = await islet.sandboxes.list({ name })
      const found = sandboxes[0] ? await islet.sandboxes.connect(sandboxes[0].id) : undefined
      const sandbox =
        found ??
        (await islet.checkpoints.createSandbox(checkpointId, { name, idempotencyKey: `${name}-again` }))
      await assertApplied(sandbox)
      await sandbox.kill()
    }
    await source.kill()
    await server.islet().checkpoints.delete(checkpointId)
    await assertNoLeak(server)
  })
})

test('a patch that runs while several servers die is followed to its end, and services wait for it', async () => {
  await withServer(async (server) => {
    const source = await server.islet().sandboxes.create()
    await source.service.start({ name: 'late', start: 'cp log seen 2>/dev/null; exec sleep 600' })
    await source.service.waitFor('late', 'running')
    const { id } = await source.createCheckpoint('base')
    const { patches } = server.islet().checkpoints
    await patches.create(id, { script: 'echo begun >> log; sleep 4; echo done >> log; exit 0' })
    const making = server
      .islet()
      .checkpoints.createSandbox(id, { name: 'slow' })
      .catch(() => undefined)
    const sandbox = await appearing(server, 'slow')
    await until(async () => (await sandbox.listPatches())[0]?.status === 'running')
    for (let kill = 0; kill < 3; kill++) {
      await server.kill()
      await server.start()
    }
    await making
    const again = await server.islet().sandboxes.connect(sandbox.id)
    // Calls wait until the sandbox is patched.
    assert.equal(await say(again, 'cat log'), 'begun\ndone')
    assert.deepEqual(statuses(await again.listPatches()), ['applied'])
    assert.deepEqual(await told(again), ['patch.applied'])
    await again.service.waitFor('late', 'running')
    await until(async () => (await say(again, 'cat seen || true')) === 'begun\ndone')
  })
})

test('a patch whose sandbox died with it has failed, is not run again, and stands in the way of the next', async () => {
  await withServer(async (server) => {
    const source = await server.islet().sandboxes.create()
    const { id } = await source.createCheckpoint('base')
    const { patches } = server.islet().checkpoints
    const cut = await patches.create(id, { script: 'echo begun >> log; sync; sleep 600' })
    await patches.create(id, { script: 'echo next >> log' })
    const making = server
      .islet()
      .checkpoints.createSandbox(id, { name: 'cut' })
      .catch(() => undefined)
    const sandbox = await appearing(server, 'cut')
    await until(async () => (await sandbox.listPatches())[0]?.status === 'running')
    await setTimeout(300)
    await server.kill()
    killCells(slotOf(server.dataDir)!)
    await server.start()
    await making
    const again = await server.islet().sandboxes.connect(sandbox.id)
    assert.equal(await say(again, 'cat log || true'), 'begun')
    const [failed, pending] = await again.listPatches()
    assert.deepEqual([failed!.status, pending!.status], ['failed', 'pending'])
    assert.match(failed!.reason!, /ended while it ran/)
    await server.islet().checkpoints.patches.delete(id, cut.id)
    await again.hibernate()
    await again.wake()
    assert.equal(await say(again, 'cat log'), 'begun\nnext')
    assert.deepEqual(await told(again), ['patch.failed', 'patch.applied'])
  })
})

async function patched(server: TestServer): Promise<{ checkpointId: string; source: Sandbox }> {
  const source = await server.islet().sandboxes.create()
  const { id } = await source.createCheckpoint('base')
  const { patches } = server.islet().checkpoints
  for (let index = 1; index <= PATCHES; index++)
    await patches.create(id, { script: `echo ${index} >> log; sleep 0.15; echo printed ${index}` })
  return { checkpointId: id, source }
}

async function assertApplied(sandbox: Sandbox): Promise<void> {
  assert.equal(await say(sandbox, 'cat log'), '1\n2\n3\n4')
  const runs = await sandbox.listPatches()
  assert.deepEqual(statuses(runs), Array(PATCHES).fill('applied'))
  assert.deepEqual(
    runs.map(({ output }) => output),
    ['printed 1\n', 'printed 2\n', 'printed 3\n', 'printed 4\n'],
  )
  assert.deepEqual(await told(sandbox), Array(PATCHES).fill('patch.applied'))
}

async function appearing(server: TestServer, name: string): Promise<Sandbox> {
  const islet = server.islet()
  let id: string | undefined
  await until(async () => {
    id = (await islet.sandboxes.list({ name })).sandboxes[0]?.id
    return id !== undefined
  })
  return islet.sandboxes.connect(id!)
}

const statuses = (runs: readonly PatchRun[]) => runs.map(({ status }) => status)

async function told(sandbox: Sandbox): Promise<SandboxEvent['type'][]> {
  const { events } = await sandbox.events.list({
    direction: 'asc',
    types: ['patch.applied', 'patch.failed'],
  })
  return events.map(({ type }) => type)
}
