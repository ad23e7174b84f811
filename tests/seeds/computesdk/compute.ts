// What the document does not show, but a program needs: where sandboxes come from.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compute, Sandbox } from 'islet/computesdk'
import { failsWith } from '../../support/shell.ts'
import type { World } from './world.ts'

export function testCompute({ server, sandbox }: World): void {
  test('compute finds, lists and destroys sandboxes, of this server or of one that is given', async () => {
    const other = compute({ gatewayUrl: server.url, computesdkApiKey: server.key, provider: 'islet' })
    const mine = await compute.sandbox.findOrCreate({
      name: 'mine',
      templateId: 'host',
      directory: '/srv/mine',
    })
    assert.equal((await mine.runCommand('pwd')).stdout, '/srv/mine\n')
    const again = await other.sandbox.findOrCreate({ name: 'mine' })
    assert.equal(again.sandboxId, mine.sandboxId)
    assert.equal((await other.sandbox.find({ name: 'mine' }))?.sandboxId, mine.sandboxId)
    assert.equal((await other.sandbox.getById(mine.sandboxId))?.sandboxId, mine.sandboxId)
    const ids = (await compute.sandbox.list()).map(({ sandboxId }) => sandboxId)
    assert.ok(ids.includes(mine.sandboxId) && ids.includes(sandbox.sandboxId))
    await compute.sandbox.destroy(mine.sandboxId)
    await compute.sandbox.destroy('sbx-00000000000000000000')
    assert.equal(await compute.sandbox.find({ name: 'mine' }), null)
    assert.equal(await compute.sandbox.getById('sbx-00000000000000000000'), null)
    assert.throws(() => compute({ provider: 'e2b' } as never), { code: 'not_supported' })
    assert.throws(() => compute({ apiKey: 'x' } as never), { code: 'bad_request' })
    await failsWith(compute.sandbox.create({ namespace: 'a' } as never), 'bad_request')
  })

  test('a handle is made from a sandboxUrl, or from the URL of the server and an id', async () => {
    const { sandboxId, sandboxUrl } = sandbox
    for (const config of [
      { sandboxUrl },
      { sandboxUrl: server.url, sandboxId },
      { sandboxUrl, token: server.key },
    ])
      assert.equal((await new Sandbox(config).runCommand('echo here')).stdout, 'here\n')
    for (const config of [
      { sandboxUrl: server.url },
      { sandboxUrl, sandboxId: 'sbx-00000000000000000000' },
      { sandboxUrl: 'unix:/nowhere/islet.sock/v1/sandboxes/sbx-1' },
      { sandboxUrl, retries: 1 } as never,
    ])
      assert.throws(() => new Sandbox(config), { code: 'bad_request' })
    assert.equal(sandbox.signal, sandbox.signals)
    const gone = new Sandbox({ sandboxUrl: server.url, sandboxId: 'sbx-00000000000000000000' })
    await failsWith(gone.runCommand('true'), 'sandbox_not_found')
  })
}
