import assert from 'node:assert/strict'
import type { Sandbox } from 'islet'
import type { Rows } from '../rows.ts'

export function envRows(sandbox: Sandbox): Rows {
  const { files, env } = sandbox
  return {
    'env.retrieve(file)': async () => {
      await files.write('.env', '# keep me\nAPI_KEY="a secret"\nDEBUG=true\n')
      assert.deepEqual(await env.retrieve('.env'), { API_KEY: 'a secret', DEBUG: 'true' })
    },
    'env.update(file, variables)': async () => {
      assert.deepEqual(await env.update('.env', { DEBUG: 'false', PORT: '3000' }), ['DEBUG', 'PORT'])
      assert.equal(await files.read('.env'), '# keep me\nAPI_KEY="a secret"\nDEBUG=false\nPORT=3000\n')
      await env.update('config/.env.local', { NEW: '1' })
      assert.deepEqual(await env.retrieve('config/.env.local'), { NEW: '1' })
    },
    'env.remove(file, keys)': async () => {
      assert.deepEqual(await env.remove('.env', ['DEBUG', 'NEVER_THERE']), ['DEBUG'])
      assert.deepEqual(await env.retrieve('.env'), { API_KEY: 'a secret', PORT: '3000' })
    },
    'env.exists(file)': async () => {
      assert.equal(await env.exists('.env'), true)
      assert.equal(await env.exists('no/.env'), false)
    },
  }
}
