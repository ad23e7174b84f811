import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectLocally } from './local-socket.ts'

test('more connections at once than a server lets wait are all made', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-local-'))
  const path = join(directory, 'sock')
  const server = createServer((socket) => socket.end()).listen({ path, backlog: 1 })
  try {
    await once(server, 'listening')
    const made = await Promise.all(Array.from({ length: 50 }, () => connection(path)))
    assert.equal(made.length, 50)
    for (const socket of made) socket.destroy()
  } finally {
    server.close()
    rmSync(directory, { recursive: true })
  }
  await assert.rejects(connection(path), { code: 'ENOENT' })
})

function connection(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    connectLocally(path, {}, (error, socket) => (error ? reject(error) : resolve(socket)))
  })
}
