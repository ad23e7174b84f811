// A link that is suspended and resumed: what an engine needs to save a sandbox's memory, in which no link may be open.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, rename, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Collector, openGuest, openLink, RawGuest, rejection, run, spec } from './testing.ts'

test('a process that runs while the link is suspended goes on, and its output comes whole', async (t) => {
  const { link, socketPath } = await openGuest(t)
  const sink = new Collector()
  const process = await link.spawn(
    spec(['sh', '-c', 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done']),
    sink,
  )
  const { bootId } = link
  for (let i = 0; i < 2; i++) {
    await link.suspend()
    assert.equal(link.connected, false)
    assert.equal(existsSync(socketPath), false)
    await sleep(60)
    await link.resume(socketPath)
    await link.ready({ timeoutMs: 5000 })
  }
  assert.equal((await process.exited).code, 0)
  assert.equal(sink.stdout, '1\n2\n3\n4\n5\n6\n7\n8\n')
  assert.equal(link.bootId, bootId)
  process.forget()
})

test('requests made while the link is suspended wait without a deadline', async (t) => {
  const { link, socketPath } = await openGuest(t, { awayTimeoutMs: 2000 })
  await link.suspend()
  await link.suspend()
  const command = run(link, ['echo', 'later'])
  const entry = link.stat('/')
  await sleep(2500)
  await link.resume(socketPath)
  assert.equal((await command).stdout, 'later\n')
  assert.equal((await entry).type, 'directory')
})

test('a request that waited before the link was suspended goes on waiting', async (t) => {
  const { link, socketPath } = await openLink(t, { awayTimeoutMs: 100 })
  const waiting = link.ports()
  await link.suspend()
  await sleep(300)
  await link.resume(socketPath)
  const guest = await RawGuest.greet(t, socketPath)
  guest.send('OK', (await guest.expect('PORTS')).stream, {})
  assert.deepEqual(await waiting, [])
})

test('a suspended link resumes at another path', async (t) => {
  const { link, directory, socketPath } = await openGuest(t)
  await link.suspend()
  await mkdir(join(directory, 'moved'))
  const moved = join(directory, 'moved', 'link.sock')
  await link.resume(moved)
  // What another mount does in a sandbox.
  await symlink(moved, `${socketPath}.new`)
  await rename(`${socketPath}.new`, socketPath)
  assert.equal((await run(link, ['echo', 'here'])).stdout, 'here\n')
})

test('answers under way arrive before the connection is closed, and new requests wait', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const making = link.mkdir('/a')
  const { stream } = await guest.expect('MKDIR')
  const suspending = link.suspend()
  const listing = link.ports()
  guest.send('OK', stream)
  await making
  assert.equal((await guest.expect('HANGUP')).fields.delayMs, 0)
  guest.socket.destroy()
  await suspending
  await link.resume(socketPath)
  const again = await RawGuest.greet(t, socketPath)
  again.send('OK', (await again.expect('PORTS')).stream, {})
  assert.deepEqual(await listing, [])
})

test('a guest that does not hang up is cut off', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  await link.suspend()
  await guest.closed
  assert.equal(link.connected, false)
})

test('a suspended link that is closed rejects what waits, and does not resume', async (t) => {
  const { link, socketPath } = await openGuest(t)
  await link.suspend()
  const waiting = rejection(link.stat('/'))
  await link.close()
  assert.equal((await waiting).code, 'sandbox_lost')
  assert.equal((await rejection(link.resume(socketPath))).code, 'sandbox_lost')
  assert.equal((await rejection(link.suspend())).code, 'sandbox_lost')
})
