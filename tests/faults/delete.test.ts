import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertNoLeak, crashDuring, MOMENTS, withServer } from './crash.ts'

test('a delete that was acknowledged stays done, one that was cut off is done or not begun, and nothing leaks', async () => {
  await withServer(async (server) => {
    for (const moment of MOMENTS) {
      const sandbox = await server.islet().sandboxes.create({ name: 'victim' })
      const neighbour = await server.islet().sandboxes.create()
      const deleted = await crashDuring(server, moment, () => server.islet().sandboxes.delete(sandbox.id))
      const { status } = await server.islet().sandboxes.get(sandbox.id)
      if (deleted) assert.equal(status, 'stopped')
      else assert.ok(status === 'stopped' || status === 'running')
      await assertNoLeak(server)
      const again = await server.islet().sandboxes.connect(neighbour.id)
      assert.equal((await again.exec.run('echo here')).stdout, 'here\n')
      await server.islet().sandboxes.delete(sandbox.id)
      await server.islet().sandboxes.delete(neighbour.id)
      await assertNoLeak(server)
    }
  })
})
