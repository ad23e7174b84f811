import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ownerCheck } from './listener-owner.ts'

test('our own program gets the key, by every name of the loopback; if nothing listens, it is not sent', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-owner-'))
  const key = join(directory, 'key')
  writeFileSync(key, 'key')
  try {
    for (const [host, names] of [
      ['127.0.0.1', ['127.0.0.1', 'localhost']],
      ['0.0.0.0', ['127.0.0.1', '127.9.8.7', 'localhost']],
    ] as const) {
      const server = createServer().listen(0, host)
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      for (const name of names) ownerCheck(`http://${name}:${port}`, key)()
      await new Promise((resolve) => server.close(resolve))
      for (const name of names)
        assert.throws(ownerCheck(`http://${name}:${port}`, key), { code: 'connection_failed' })
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
})
