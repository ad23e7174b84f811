// The server is killed at every visible step of checkpoint, restore, fork and suspension. Afterwards acknowledged work is there
// bit for bit, other work is complete or absent, every sandbox can be used, and nothing leaks.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Forks, SnapshotInfo } from '@islet/contract'
import type { TestServer } from '../support/server.ts'
import { withServer } from './crash.ts'
import { audit } from './state-audit.ts'
import {
  afterwards,
  at,
  call,
  change,
  checkpoint,
  checkpoints,
  crashAt,
  fill,
  look,
  restore,
  type Step,
  serves,
  statusOf,
} from './state-world.ts'

const env = { ISLET_POOL_SIZE: '512Mi', ISLET_LOG_LEVEL: 'warn' }

test('a checkpoint that a crash interrupted is complete or absent, and the sandbox continues', async () => {
  await withServer(
    async (server) => {
      const id = await fill(server.islet(), 'first')
      const kept = await checkpoint(server, id, 'kept')
      const first = await look(server.islet(), id)
      const steps: Step[] = [
        at.once,
        at.frozen,
        at.layers(1),
        afterwards(at.frozen),
        at.answered,
        at.after(8),
      ]
      for (const [index, step] of steps.entries()) {
        await change(server.islet(), id, `change-${index}`)
        const before = await look(server.islet(), id)
        const name = `at-${index}`
        const acknowledged = await crashAt(server, step, () => checkpoint(server, id, name))
        assert.equal(await look(server.islet(), id), before, 'it goes on as it was')
        await audit(server)
        const found = (await checkpoints(server, id)).find((info) => info.name === name)
        if (acknowledged) assert.equal(found?.id, acknowledged.id)
        if (!found) continue
        await change(server.islet(), id, 'away')
        await restore(server, id, found.id)
        assert.equal(await look(server.islet(), id), before, 'it is restored bit for bit')
        await call(server, 'DELETE', `/sandboxes/${id}/checkpoints/${found.id}`)
      }
      await restore(server, id, kept.id)
      assert.equal(await look(server.islet(), id), first)
      await audit(server)
    },
    { env },
  )
})

test('a restore that a crash cut off is done or not, never half, and the checkpoint can be restored again', async () => {
  await withServer(
    async (server) => {
      const id = await fill(server.islet(), 'first')
      const { id: saved } = await checkpoint(server, id, 'saved')
      const first = await look(server.islet(), id)
      const steps: Step[] = [
        at.once,
        at.layers(1),
        at.cellGone,
        at.layerGone,
        at.cells(1),
        at.after(40),
        at.answered,
      ]
      for (const [index, step] of steps.entries()) {
        await change(server.islet(), id, `change-${index}`)
        const before = await look(server.islet(), id)
        const done = await crashAt(server, step, () => restore(server, id, saved))
        const found = await look(server.islet(), id)
        assert.ok(found === first || (found === before && !done), `as restored or as before\n${found}`)
        await serves(server, id)
        await audit(server)
        await restore(server, id, saved)
        assert.equal(await look(server.islet(), id), first)
      }
    },
    { env },
  )
})

test('forks that a crash cut off are sandboxes like their source or are not there', async () => {
  await withServer(
    async (server) => {
      const id = await fill(server.islet(), 'source')
      const before = await look(server.islet(), id)
      const steps: Step[] = [at.frozen, at.layers(1), at.layers(2), at.cells(2), at.after(60), at.answered]
      for (const step of steps) {
        const fork = () => call<Forks>(server, 'POST', `/sandboxes/${id}/fork`, { count: 3 })
        const done = await crashAt(server, step, fork)
        assert.equal(await look(server.islet(), id), before, 'the source goes on')
        await audit(server)
        const { sandboxes } = await server.islet().sandboxes.list()
        const children = sandboxes.filter((sandbox) => sandbox.id !== id)
        if (done) assert.equal(children.length, 3)
        const states = await Promise.all(children.map((child) => look(server.islet(), child.id)))
        for (const state of states) assert.equal(state, before)
        for (const child of children) await serves(server, child.id)
        await Promise.all(children.map((child) => server.islet().sandboxes.delete(child.id)))
        await audit(server)
      }
    },
    { env },
  )
})

test('a snapshot that a crash cut off is gone or whole, and a tag names exactly one', async () => {
  await withServer(
    async (server) => {
      const id = await fill(server.islet(), 'source')
      const before = await look(server.islet(), id)
      const publish = (name: string) =>
        call<SnapshotInfo>(server, 'POST', '/snapshots', { sandbox: id, name, tag: 'current' })
      const first = await publish('first')
      let tagged = first.id
      for (const [index, step] of [at.frozen, at.layers(1), afterwards(at.frozen), at.answered].entries()) {
        const name = `at-${index}`
        const acknowledged = await crashAt(server, step, () => publish(name))
        const { snapshots } = await call<{ snapshots: SnapshotInfo[] }>(server, 'GET', '/snapshots')
        const found = snapshots.find((snapshot) => snapshot.name === name)
        if (acknowledged) assert.equal(found?.id, acknowledged.id)
        tagged = found?.id ?? tagged
        const current = await call<SnapshotInfo>(server, 'GET', '/snapshots/current')
        assert.equal(current.id, tagged)
        assert.equal(snapshots.filter(({ tag }) => tag === 'current').length, 1)
        const made = await server.islet().sandboxes.create({ snapshot: 'current' })
        assert.equal(await look(server.islet(), made.id), before)
        await made.kill()
        await audit(server)
      }
      // Deleted while a sandbox stands on it: its layer stays for that one.
      const made = await server.islet().sandboxes.create({ snapshot: 'current' })
      await crashAt(server, at.once, () => call(server, 'DELETE', '/snapshots/current'))
      assert.equal(await look(server.islet(), made.id), before)
      await audit(server)
    },
    { env },
  )
})

test('a sandbox that was being hibernated, woken or paused when the server died can be used at once', async () => {
  await withServer(
    async (server) => {
      const id = await fill(server.islet(), 'sleeper')
      const before = await look(server.islet(), id)
      const sandbox = await server.islet().sandboxes.connect(id)
      await sandbox.exec.spawn('while :; do date +%s%N > /tmp/beat; sleep 0.01; done')
      const rounds: [string, Step, string[]][] = [
        ['hibernate', at.frozen, ['running', 'hibernated']],
        ['hibernate', at.answered, ['hibernated']],
        ['wake', at.once, ['hibernated', 'running']],
        ['wake', afterwards(at.frozen), ['hibernated', 'running']],
        ['pause', at.frozen, ['running', 'paused']],
        ['pause', at.answered, ['paused']],
        ['resume', afterwards(at.frozen), ['paused', 'running']],
      ]
      for (const [verb, step, expected] of rounds) {
        await toBe(
          server,
          id,
          { hibernate: 'running', pause: 'running', wake: 'hibernated' }[verb] ?? 'paused',
        )
        await crashAt(server, step, () => call(server, 'POST', `/sandboxes/${id}/${verb}`))
        const status = await statusOf(server, id)
        assert.ok(expected.includes(status), `${verb} left it ${status}`)
        await audit(server)
        assert.equal(await look(server.islet(), id), before)
        assert.equal(await statusOf(server, id), 'running')
        await beats(server, id)
      }
    },
    { env },
  )
})

test('a checkpoint whose deletion a crash interrupted is complete or absent; layers that others need stay', async () => {
  await withServer(
    async (server) => {
      const id = await fill(server.islet(), 'source')
      const before = await look(server.islet(), id)
      for (const [index, step] of [at.once, at.layerGone, at.answered].entries()) {
        const { id: doomed } = await checkpoint(server, id, `doomed-${index}`)
        const path = `/sandboxes/${id}/checkpoints/${doomed}`
        const child = await call<{ id: string }>(server, 'POST', `/checkpoints/${doomed}/sandboxes`, {})
        const other = await checkpoint(server, id, `other-${index}`)
        await call(server, 'DELETE', `/sandboxes/${id}/checkpoints/${other.id}`)
        // Only the checkpoint needs this layer, so its removal can be seen.
        if (step === at.layerGone) await server.islet().sandboxes.delete(child.id)
        await crashAt(server, step, () => call(server, 'DELETE', path))
        await audit(server)
        const left = (await checkpoints(server, id)).find((info) => info.id === doomed)
        if (step !== at.layerGone) {
          assert.equal(await look(server.islet(), child.id), before)
          await server.islet().sandboxes.delete(child.id)
        }
        if (left) {
          await restore(server, id, doomed)
          await call(server, 'DELETE', path)
        }
        assert.equal(await look(server.islet(), id), before)
        await audit(server)
      }
    },
    { env },
  )
})

test('a deep stack that is made one layer is whole, whenever the server dies', async () => {
  await withServer(
    async (server) => {
      let id = await fill(server.islet(), 'deep')
      for (let depth = 0; depth < 16; depth++) {
        const [made] = (await call<Forks>(server, 'POST', `/sandboxes/${id}/fork`, {})).forks
        assert.ok(made?.ok)
        await call(server, 'DELETE', `/sandboxes/${id}`)
        id = made.sandbox.id
        await (await server.islet().sandboxes.connect(id)).files.write(`tree/depth-${depth}`, `${depth}`)
      }
      const { id: saved } = await checkpoint(server, id, 'deep')
      const before = await look(server.islet(), id)
      for (const step of [at.halfLayer, at.layers(1)]) {
        await crashAt(server, step, () => restore(server, id, saved))
        assert.equal(await look(server.islet(), id), before)
        await audit(server)
      }
      await restore(server, id, saved)
      assert.equal(await look(server.islet(), id), before)
      await audit(server)
    },
    // Only storage that stacks layers on each other.
    { env: { ...env, ISLET_STORAGE: 'copy' } },
  )
})

async function toBe(server: TestServer, id: string, wanted: string): Promise<void> {
  const verb = { hibernated: 'hibernate', paused: 'pause' }[wanted]
  await (await server.islet().sandboxes.connect(id)).exec.run('true')
  if (verb) await call(server, 'POST', `/sandboxes/${id}/${verb}`)
  assert.equal(await statusOf(server, id), wanted)
}

/** The processes in it continue. */
async function beats(server: TestServer, id: string): Promise<void> {
  const sandbox = await server.islet().sandboxes.connect(id)
  const { exitCode } = await sandbox.exec.run(
    'was=$(cat /tmp/beat); for i in $(seq 500); do [ "$(cat /tmp/beat)" = "$was" ] || exit 0; sleep 0.02; done; exit 1',
  )
  assert.equal(exitCode, 0, 'what ran in it goes on')
}
