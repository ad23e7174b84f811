import assert from 'node:assert/strict'
import { Sandbox } from 'islet/computesdk'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

const DAY_MS = 86_400_000
const NO_TOKEN = 'tok-00000000000000000000'

export function accessPrograms({ sandbox }: World): Programs {
  const { magicLinks, sandboxUrl, sessionTokens } = sandbox
  const lifeMs = ({ createdAt, expiresAt }: { createdAt: string; expiresAt: string }) =>
    Date.parse(expiresAt) - Date.parse(createdAt)
  const removeAll = async () => {
    const tokens = await sessionTokens.list()
    await Promise.all(tokens.map(({ id }) => sessionTokens.revoke(id)))
  }
  return {
    'a session token gives access to its sandbox, and may not manage tokens': async () => {
      const made = await sessionTokens.create({ description: 'My Application' })
      assert.deepEqual(Object.keys(made).sort(), ['createdAt', 'description', 'expiresAt', 'id', 'token'])
      assert.match(made.token, /^st_/)
      assert.equal(made.description, 'My Application')
      const there = new Sandbox({ sandboxUrl, token: made.token })
      assert.equal((await there.runCommand('echo $((6 * 7))')).stdout, '42\n')
      await there.filesystem.writeFile('/tmp/theirs', 'x')
      assert.equal(await sandbox.filesystem.readFile('/tmp/theirs'), 'x')
      assert.equal((await there.getInfo()).id, sandbox.sandboxId)
      const signals = await there.signals.start()
      await signals.stop()
      for (const refused of [
        there.sessionTokens.create(),
        there.sessionTokens.list(),
        there.sessionTokens.retrieve(made.id),
        there.sessionTokens.revoke(made.id),
        there.magicLinks.create(),
      ])
        await assert.rejects(refused, { code: 'forbidden', status: 403 })
      assert.equal(sandbox.sessionToken, sessionTokens)
      assert.equal(sandbox.magicLink, magicLinks)
      await failsWith(new Sandbox({ sandboxUrl, token: 'st_wrong' }).runCommand('true'), 'unauthorized')
    },
    'a session token lives 7 days, or the seconds that are given': async () => {
      assert.equal(lifeMs(await sessionTokens.create()), 7 * DAY_MS)
      const short = await sessionTokens.create({ description: 'Short-lived token', expiresIn: 3600 })
      assert.equal(lifeMs(short), 3_600_000)
      await failsWith(sessionTokens.create({ expiresIn: 0 }), 'bad_request')
      await failsWith(sessionTokens.create({ expiresIn: '1h' } as never), 'bad_request')
      await removeAll()
    },
    'tokens are listed with their last use, and retrieved without it': async () => {
      assert.deepEqual(await sessionTokens.list(), [])
      const { token, ...used } = await sessionTokens.create({ description: 'Production API' })
      const { token: _, ...other } = await sessionTokens.create()
      await new Sandbox({ sandboxUrl, token }).runCommand('true')
      const find = async () => (await sessionTokens.list()).find(({ id }) => id === used.id)
      await until(async () => (await find())?.lastUsedAt !== undefined)
      const { lastUsedAt, ...listed } = (await find())!
      assert.deepEqual(listed, used)
      assert.ok(Date.parse(lastUsedAt!) > 0)
      assert.deepEqual(
        (await sessionTokens.list()).find(({ id }) => id === other.id),
        other,
      )
      assert.deepEqual(await sessionTokens.retrieve(used.id), used)
      assert.deepEqual(await sessionTokens.retrieve(other.id), other)
      assert.ok(Date.parse(used.expiresAt) > Date.now())
      await assert.rejects(sessionTokens.retrieve(NO_TOKEN), { code: 'token_not_found' })
      await removeAll()
    },
    'a revoked token is refused at once, and revoking it again does nothing': async () => {
      const { id, token } = await sessionTokens.create()
      const there = new Sandbox({ sandboxUrl, token })
      assert.equal((await there.runCommand('true')).exitCode, 0)
      await sessionTokens.revoke(id)
      await assert.rejects(there.runCommand('true'), { status: 401 })
      await sessionTokens.revoke(id)
      await sessionTokens.revoke(NO_TOKEN)
      const short = await sessionTokens.create({ expiresIn: 1 })
      await until(() => Date.parse(short.expiresAt) < Date.now())
      await assert.rejects(new Sandbox({ sandboxUrl, token: short.token }).runCommand('true'), {
        status: 401,
      })
      for (const { id, expiresAt } of await sessionTokens.list())
        if (Date.parse(expiresAt) < Date.now()) await sessionTokens.revoke(id)
      assert.deepEqual(await sessionTokens.list(), [])
    },
    'a magic link is used once, and sets a cookie': async () => {
      const link = await magicLinks.create()
      assert.equal(link.redirectUrl, '/play/')
      assert.ok(Date.parse(link.expiresAt) - Date.now() <= 5 * 60_000)
      const opened = await fetch(link.url, { redirect: 'manual' })
      assert.equal(opened.headers.get('Location'), '/play/')
      assert.match(opened.headers.get('Set-Cookie')!, /HttpOnly/i)
      assert.equal(opened.status, 303)
      assert.ok((await fetch(link.url, { redirect: 'manual' })).status >= 400)
      const session = (await sessionTokens.list())[0]!
      assert.equal(lifeMs(session), 7 * DAY_MS)
      const other = await magicLinks.create({ redirectUrl: '/dashboard' })
      assert.equal(other.redirectUrl, '/dashboard')
      await failsWith(magicLinks.create({ redirectUrl: 'https://elsewhere.example/' }), 'bad_request')
      await removeAll()
    },
  }
}
