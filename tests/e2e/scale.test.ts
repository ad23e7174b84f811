// The cost of one sandbox must not depend on the number of others: none carries the mounts of another, and idle ones take no
// time.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { slotOf } from '../support/leftovers.ts'
import { startSuite } from '../support/suite.ts'

const QUIET_MS = 2000
const TRIES = 20

// No cell that waits: all that are there belong to the sandboxes made here.
const suite = await startSuite({ env: { ISLET_WARM_MAX: '0', ISLET_WARM_MIN: '0' } })
const slot = slotOf(suite.server.dataDir)!
const warden = childrenOf(suite.server.pid).find((pid) => nameOf(pid) === 'warden')!

test('the mounts of a sandbox are visible only in it', async () => {
  await suite.create()
  const before = { host: mountsOf('self').filter(isOurs), warden: mountsOf(warden).length }
  await Promise.all([suite.create(), suite.create(), suite.create()])
  const after = { host: mountsOf('self').filter(isOurs), warden: mountsOf(warden).length }
  assert.deepEqual(after, before)
  const cells = cellsOf(slot)
  assert.equal(cells.length, 4)
  for (const { id, pid } of cells) {
    const others = cells.filter((cell) => cell.id !== id)
    const seen = mountsOf(pid).filter((mount) => others.some((other) => mount.includes(other.id)))
    assert.deepEqual(seen, [])
  }
  assert.equal(new Set(cells.map(({ pid }) => mountsOf(pid).length)).size, 1)
})

test('the guest of a sandbox in which nothing runs sleeps and is not woken', async () => {
  const sandbox = await suite.create()
  await sandbox.exec.run(['true'])
  const guests = cellsOf(slot).map(({ pid }) => pid)
  assert.ok(guests.length > 0)
  for (let tries = 1; ; tries++) {
    const before = guests.map(switchesOf)
    await setTimeout(QUIET_MS)
    const after = guests.map(switchesOf)
    if (after.join() === before.join()) break
    assert.ok(tries < TRIES, `woken again and again: ${before} then ${after}`)
  }
})

function isOurs(mount: string): boolean {
  return mount.includes(suite.server.dataDir) || mount.includes(`/run/islet/${slot}/`)
}

function mountsOf(pid: number | 'self'): string[] {
  return readFileSync(`/proc/${pid}/mountinfo`, 'utf8').trim().split('\n')
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
}

function nameOf(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
}

function cellsOf(ofSlot: string): { id: string; pid: number }[] {
  const directory = `/run/islet/${ofSlot}/s`
  return readdirSync(directory).map((id) => {
    const { process } = JSON.parse(readFileSync(`${directory}/${id}/cell.json`, 'utf8'))
    return { id, pid: process.pid }
  })
}

/** How often it stopped running, whether by itself or not. */
function switchesOf(pid: number): number {
  const counts = readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/ctxt_switches:\s+(\d+)/g)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}
