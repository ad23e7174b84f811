import assert from 'node:assert/strict'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function envPrograms({ sandbox }: World): Programs {
  const { env } = sandbox
  return {
    'retrieve gives the variables of a file': async () => {
      await sandbox.runCommand('printf "API_KEY=\'a secret\'\\n# kept\\nDEBUG=true\\nPORT=3000\\n" > .env')
      const variables = await env.retrieve('.env')
      assert.deepEqual(variables, { API_KEY: 'a secret', DEBUG: 'true', PORT: '3000' })
      const local = (await env.exists('.env.local')) ? await env.retrieve('.env.local') : 'defaults'
      assert.equal(local, 'defaults')
      await assert.rejects(env.retrieve('.env.local'), { code: 'file_not_found' })
    },
    'update merges variables into a file, and creates it': async () => {
      assert.deepEqual(await env.update('.env', { API_KEY: 'new-secret', DEBUG: 'true' }), [
        'API_KEY',
        'DEBUG',
      ])
      assert.deepEqual(await env.retrieve('.env'), { API_KEY: 'new-secret', DEBUG: 'true', PORT: '3000' })
      assert.match((await sandbox.runCommand('cat .env')).stdout, /^# kept$/m)
      await env.update('config/.env.local', { DEBUG: 'true', LOG_LEVEL: 'verbose' })
      await env.update('config/.env.local', { DEBUG: 'false' })
      assert.deepEqual(await env.retrieve('config/.env.local'), { DEBUG: 'false', LOG_LEVEL: 'verbose' })
      await assert.rejects(env.update('.env', { PORT: 3000 } as never), { code: 'bad_request' })
    },
    'remove removes variables and keeps the others': async () => {
      assert.deepEqual(await env.remove('.env', ['DEBUG', 'DEPRECATED']), ['DEBUG'])
      assert.deepEqual(await env.retrieve('.env'), { API_KEY: 'new-secret', PORT: '3000' })
    },
    'exists is false for a file that is not there': async () => {
      assert.deepEqual([await env.exists('.env'), await env.exists('.env.production')], [true, false])
      await env.update('.env.production', { NODE_ENV: 'production', DATABASE_URL: 'postgres://db/app?a=b' })
      assert.equal(await env.exists('.env.production'), true)
      assert.equal((await env.retrieve('.env.production')).DATABASE_URL, 'postgres://db/app?a=b')
    },
  }
}
