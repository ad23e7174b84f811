// Kills of servers with a warm pool: waiting cells are removed, sandboxes keep running, no cell is half bound.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode, type Sandbox } from 'islet'
import { heldBy } from '../support/held.ts'
import type { TestServer } from '../support/server.ts'
import { say } from '../support/shell.ts'
import { cellsOf, warm } from '../support/warm.ts'
import { crashDuring, withServer } from './crash.ts'

const WARM = { env: { ISLET_WARM_MIN: '3', ISLET_WARM_MAX: '3', ISLET_DEFAULT_RUNTIME: 'host' } }

test('cells that waited when the server was killed are never used, and leave nothing', () =>
  withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    await warm(server)
    const before = cellsOf(server)
    await server.kill()
    await server.start()
    await warm(server)
    const kept = cellsOf(server).filter((cell) => before.includes(cell))
    assert.equal(kept.length, 1, 'only that of the sandbox')
    assert.equal(await say(await again(server, sandbox), 'hostname'), sandbox.id)
    assert.equal(heldBy(server).cells, 4)
    assert.equal(heldBy(server).cgroups, 4)
  }, WARM))

test('a create or restore from a warm cell that a crash cuts off is whole or not there', () =>
  withServer(async (server) => {
    const first = await server.islet().sandboxes.create()
    await say(first, 'echo saved > /workspace/file')
    const { id } = await first.createCheckpoint('saved')
    for (const moment of [2, 6, 14]) {
      await warm(server)
      await crashDuring(server, moment, () => server.islet().sandboxes.create())
      await warm(server)
      await crashDuring(server, moment, async () => (await again(server, first)).restoreCheckpoint(id))
      const restored = await again(server, first)
      assert.equal(await say(restored, 'cat /workspace/file; hostname'), `saved\n${first.id}`)
      const { sandboxes } = await server.islet().sandboxes.list({ status: 'running' })
      for (const { id } of sandboxes.filter((each) => each.id !== first.id)) {
        const sandbox = await server.islet().sandboxes.get(id)
        assert.equal(await say(await again(server, sandbox), 'hostname; test -d /usr'), id)
        await server.islet().sandboxes.delete(id)
      }
    }
    await warm(server)
    const { cells, cgroups } = heldBy(server)
    assert.deepEqual({ cells, cgroups }, { cells: 4, cgroups: 4 })
  }, WARM))

/** As the server that runs now knows it, when it is usable. */
async function again(server: TestServer, { id }: { id: string }): Promise<Sandbox> {
  const sandbox = await server.islet().sandboxes.connect(id)
  await sandbox.exec.run(['true']).catch((error) => assert.ok(!hasCode(error, 'sandbox_not_found')))
  return sandbox
}
