import assert from 'node:assert/strict'
import { Sandbox } from 'islet'
import { failsWith } from '../../support/shell.ts'
import type { Suite } from '../../support/suite.ts'
import type { Rows } from '../rows.ts'

export function accessRows({ server }: Suite, sandbox: Sandbox): Rows {
  const { sessionTokens, magicLinks } = sandbox
  const { url } = server
  return {
    'sessionTokens.create(options)': async () => {
      const made = await sessionTokens.create({ description: 'an app', expiresIn: '1h' })
      assert.match(made.token, /^st_/)
      assert.deepEqual([made.description, made.sandboxId], ['an app', sandbox.id])
      assert.equal(Date.parse(made.expiresAt) - Date.parse(made.createdAt), 3_600_000)
      const usual = await sessionTokens.create()
      assert.equal(usual.description, null)
      assert.equal(Date.parse(usual.expiresAt) - Date.parse(usual.createdAt), 7 * 86_400_000)
    },
    'sessionTokens.list()': async () => {
      const all = await sessionTokens.list()
      assert.deepEqual(all.map(({ description }) => description).sort(), ['an app', null])
      assert.ok(all.every((one) => one.lastUsedAt === null && !('token' in one)))
    },
    'sessionTokens.retrieve(id)': async () => {
      const { id, token, ...rest } = await sessionTokens.create({ description: 'one' })
      assert.deepEqual(await sessionTokens.retrieve(id), { id, ...rest, lastUsedAt: null })
      await failsWith(sessionTokens.retrieve('token_xyz789'), 'token_not_found')
    },
    'sessionTokens.revoke(id)': async () => {
      const all = await sessionTokens.list()
      await Promise.all(all.map(({ id }) => sessionTokens.revoke(id)))
      await sessionTokens.revoke(all[0]!.id)
      assert.deepEqual(await sessionTokens.list(), [])
    },
    'new Sandbox({ sandboxUrl, token })': async () => {
      const { id, token } = await sessionTokens.create()
      const delegated = await Sandbox.connect(sandbox.id, { url, token })
      assert.equal((await delegated.runCommand('echo hi')).stdout, 'hi\n')
      await failsWith(delegated.sessionTokens.list(), 'forbidden')
      await sessionTokens.revoke(id)
      await failsWith(delegated.runCommand('echo hi'), 'unauthorized')
    },
    'magicLinks.create(options)': async () => {
      const link = await magicLinks.create()
      assert.ok(link.url.startsWith(`${url}/auth/magic/`))
      assert.ok(Date.parse(link.expiresAt) - Date.now() <= 300_000)
      assert.equal(link.redirectUrl, '/play/')
      assert.equal((await magicLinks.create({ redirectUrl: '/dashboard' })).redirectUrl, '/dashboard')
    },
  }
}
