import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkExposure } from './doctor.ts'

test('doctor warns only of a server that the network reaches without TLS', async () => {
  const bare = await checkExposure({ ISLET_HOST: '0.0.0.0' })
  assert.deepEqual([bare.ok, bare.optional], [false, true])
  assert.match(bare.detail, /0\.0\.0\.0 without TLS/)
  assert.match(bare.mend!, /ISLET_TLS_CERT/)
  assert.equal((await checkExposure({})).ok, true)
  const tls = { ISLET_TLS_CERT: '/etc/ssl/islet.pem', ISLET_TLS_KEY: '/etc/ssl/islet.key' }
  assert.match((await checkExposure({ ISLET_HOST: '0.0.0.0', ...tls })).detail, /with TLS/)
})
