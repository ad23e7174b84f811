import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sandbox as SandboxInfo } from '@islet/contract'
import type { Sandbox } from 'islet'
import { assertNoLeak, crashDuring, MOMENTS, withServer } from './crash.ts'

test('a create that a crash cut off leaves nothing, one that was acknowledged runs, and a retry with its key makes one', async () => {
  await withServer(async (server) => {
    for (const moment of MOMENTS) {
      const request = {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `create-${moment}` },
        body: JSON.stringify({
          name: `at-${moment}`,
          files: [{ path: 'hello', content: 'there' }],
          network: { port: 3000 },
        }),
      }
      const create = async () => (await (await server.fetch('/v1/sandboxes', request)).json()) as SandboxInfo
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
      if (acknowledged) assert.equal(sandbox.url, acknowledged.url)
      await assertOnePreview(sandbox)
      await assertNoLeak(server)
      await sandbox.kill()
    }
  })
})

test('after a crash while the port of a sandbox changes, its record has the port of the only preview', async () => {
  await withServer(async (server) => {
    let sandbox = await server.islet().sandboxes.create({ network: { port: 3000 } })
    const { id } = sandbox
    for (const [index, moment] of [0, 1, 2, 3, 5, 8].entries()) {
      const port = 4000 + index
      const acknowledged = await crashDuring(server, moment, () => sandbox.update({ network: { port } }))
      sandbox = await server.islet().sandboxes.connect(id)
      if (acknowledged) assert.equal(sandbox.url, acknowledged.url)
      await assertOnePreview(sandbox)
      assert.equal((await sandbox.update({ network: { port } })).network.port, port)
    }
  })
})

async function assertOnePreview(sandbox: Sandbox): Promise<void> {
  const { network, url } = await sandbox.getInfo()
  const previews = await sandbox.listPreviewURLs()
  assert.deepEqual(
    previews.map((preview) => [preview.port, preview.url]),
    [[network.port, url]],
  )
  // The gateway answers: nothing listens behind it.
  assert.equal((await fetch(url!)).status, 502)
}
