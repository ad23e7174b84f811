import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { assertNoLeak, crashDuring, MOMENTS, withServer } from './crash.ts'

test('a create that a crash cut off leaves nothing, one that was acknowledged runs, and a retry with its key makes one', async () => {
  await withServer(async (server) => {
    for (const moment of MOMENTS) {
      const request = {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `create-${moment}` },
        body: JSON.stringify({ name: `at-${moment}`, files: [{ path: 'hello', content: 'there' }] }),
      }
      const create = async () => (await (await server.fetch('/v1/sandboxes', request)).json()) as Sandbox
      const acknowledged = await crashDuring(server, moment, create)
      const before = await server.islet().sandboxes.list({ name: `at-${moment}` })
      if (acknowledged) assert.equal(before.sandboxes[0]?.id, acknowledged.id)
      await assertNoLeak(server)

      const retried = await create()
      const after = await server.islet().sandboxes.list({ name: `at-${moment}` })
      assert.deepEqual(
        after.sandboxes.map(({ id }) => id),
        [acknowledged?.id ?? retried.id],
      )
      assert.equal(retried.id, after.sandboxes[0]!.id)
      const sandbox = await server.islet().sandboxes.connect(retried.id)
      assert.equal((await sandbox.exec.run('cat hello')).stdout, 'there')
      await assertNoLeak(server)
      await sandbox.kill()
    }
  })
})
