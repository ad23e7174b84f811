// The warm pool: a sandbox from it is like one made without it, and no cell is used twice or left behind.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import { warmFloor } from '../../packages/server/src/control/warm/floor.ts'
import { heldBy } from '../support/held.ts'
import { needs } from '../support/programs.ts'
import { say } from '../support/shell.ts'
import { type Suite, startSuite } from '../support/suite.ts'
import { cellsDirectory, cellsOf, warm } from '../support/warm.ts'

needs('curl')

const large = await startSuite({ env: { ISLET_WARM_MIN: '100', ISLET_WARM_MAX: '100' } })
const small = await startSuite({ env: { ISLET_WARM_MIN: '2', ISLET_WARM_MAX: '12' } })
const auto = await startSuite({ env: { ISLET_WARM_MIN: 'auto', ISLET_WARM_MAX: '6' } })
const none = await startSuite({ env: { ISLET_WARM_MAX: '0' } })

test('a hundred creates at once from a warm pool share nothing, and all are gone afterwards', async () => {
  await warm(large.server)
  const waiting = new Set(liveOf(large).keys())
  const sandboxes = await Promise.all(
    Array.from({ length: 100 }, (_, n) => large.create({ env: { N: `${n}` } })),
  )
  const seen = await Promise.all(
    sandboxes.map(async (sandbox, n) => {
      assert.equal(
        await say(sandbox, 'ls -A /tmp /dev/shm /workspace; echo $N > /tmp/mine; echo $N'),
        lines(n),
      )
      const [hostname, machineId, uids] = (
        await say(sandbox, 'hostname; cat /etc/machine-id; tr -s " " < /proc/self/uid_map')
      ).split('\n')
      assert.equal(hostname, sandbox.id)
      return { hostname, machineId, uids, cell: cellOf(large, uids!) }
    }),
  )
  for (const key of ['hostname', 'machineId', 'uids', 'cell'] as const)
    assert.equal(new Set(seen.map((each) => each[key])).size, 100, key)
  // On a busy machine some that were started meanwhile are among them.
  assert.ok(seen.some(({ cell }) => waiting.has(cell)))
  for (const [n, sandbox] of sandboxes.entries()) assert.equal(await say(sandbox, 'cat /tmp/mine'), `${n}`)
  await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
  assert.ok(heldBy(large.server).layers <= 102, 'only layers that wait, for cells and without, are left')
  const left = cellsOf(large.server)
  assert.deepEqual(
    seen.filter(({ cell }) => left.includes(cell)),
    [],
  )
})

test('a server with default settings has waiting cells before the first create', async () => {
  const { min, max } = (await auto.islet.info()).warm
  assert.equal(min, Math.min(warmFloor(), 6))
  await warm(auto.server)
  const { ready } = (await auto.islet.info()).warm
  assert.deepEqual([ready, max], [min, 6])
})

test('a cell is used once, by whatever is made', async () => {
  const used = new Set<string>()
  const fromPool = async (make: () => Promise<Sandbox>) => {
    await warm(small.server)
    const waiting = liveOf(small)
    const sandbox = await make()
    const uids = await say(sandbox, 'tr -s " " < /proc/self/uid_map')
    const cell = cellOf(small, uids)
    assert.ok(waiting.has(cell), 'it was waiting')
    assert.ok(!used.has(cell), 'nobody used it before')
    used.add(cell)
    return sandbox
  }
  const source = await fromPool(() => small.create())
  await say(source, 'echo one > /workspace/file')
  const { id } = await source.createCheckpoint('one')
  const { islet } = small
  const snapshot = await source.createSnapshot({ tag: 'warm' })
  await using fork = await fromPool(() => source.fork())
  await using copy = await fromPool(() => islet.checkpoints.createSandbox(id))
  await using fromTag = await fromPool(() => islet.sandboxes.create({ snapshot: 'warm' }))
  for (const sandbox of [fork, copy, fromTag])
    assert.equal(await say(sandbox, 'cat /workspace/file; hostname'), `one\n${sandbox.id}`)
  await say(source, 'echo two > /workspace/file')
  await fromPool(async () => {
    await source.restoreCheckpoint(id)
    return source
  })
  assert.equal(await say(source, 'cat /workspace/file; hostname'), `one\n${source.id}`)
  await source.kill()
  await islet.snapshots.delete(snapshot.id)
})

test('copies of a snapshot that wait are of the one that is meant', async () => {
  const { islet } = small
  const source = await small.create()
  const fromTag = () => islet.sandboxes.create({ snapshot: 'meant' })
  const ids: string[] = []
  for (const content of ['one', 'two']) {
    await say(source, `echo ${content} > /workspace/file`)
    ids.push((await source.createSnapshot({ tag: 'meant' })).id)
    for (let round = 0; round < 3; round++) {
      await warm(small.server)
      await using sandbox = await fromTag()
      assert.equal(await say(sandbox, 'cat /workspace/file; echo used >> /workspace/file'), content)
    }
    await islet.snapshots.delete(ids.at(-1)!)
  }
  await assert.rejects(fromTag(), { code: 'snapshot_not_found' })
  await source.kill()
})

test('a snapshot that is deleted leaves no copy on the disk', async () => {
  const source = await small.create()
  await say(source, 'echo secret > /workspace/deleted')
  const { id } = await source.createSnapshot({ tag: 'deleted' })
  await source.kill()
  // Until copies of it wait.
  for (let round = 0; copiesOf('workspace/deleted').length < 2; round++) {
    assert.ok(round < 20, 'copies are made ahead')
    const sandbox = await small.islet.sandboxes.create({ snapshot: 'deleted' })
    await sandbox.kill()
    await warm(small.server)
  }
  await small.islet.snapshots.delete(id)
  // One that was just being made goes a moment later.
  const since = performance.now()
  while (copiesOf('workspace/deleted').length > 0 && performance.now() < since + 20_000) await setTimeout(20)
  assert.deepEqual(copiesOf('workspace/deleted'), [])
})

test('a snapshot that is deleted while copies of it are wanted does not hold up the pool', async () => {
  const { islet, server } = small
  const source = await small.create()
  const { id } = await source.createSnapshot({ tag: 'wanted' })
  const fromTag = () => islet.sandboxes.create({ snapshot: 'wanted' })
  const sandboxes = await Promise.all([fromTag(), fromTag(), fromTag()])
  await islet.snapshots.delete(id)
  await Promise.all([source, ...sandboxes].map((sandbox) => sandbox.kill()))
  await warm(server)
  assert.ok(!server.output.includes('no cell could be started ahead'))
})

test('the pool grows with demand up to its ceiling, and shows it', async () => {
  await warm(small.server)
  const sandboxes = await Promise.all(Array.from({ length: 20 }, () => small.create()))
  const { target } = (await small.islet.info()).warm
  assert.equal(target, 12)
  await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
  assert.deepEqual(await warm(small.server), { ready: 12, target: 12, min: 2, max: 12 })
})

test('other programs cannot use the socket of a waiting cell; each sandbox finds its own', async () => {
  await warm(small.server)
  const waiting = cellsOf(small.server)
  for (const id of waiting) {
    const socket = connect(`${cellsDirectory(small.server)}/${id}/link/inside.sock`)
    socket.write('GET /v1/store/x HTTP/1.1\r\nHost: islet\r\n\r\n')
    socket.on('error', () => {})
    assert.deepEqual(await socket.toArray().catch(() => []), [], 'no answer')
  }
  const look = 'curl -s -H "Authorization: Bearer $ISLET_STORE_TOKEN" $ISLET_STORE_URL/who'
  const sandboxes = await Promise.all(waiting.map(() => small.create({ storeAccess: true })))
  await Promise.all(sandboxes.map((sandbox) => sandbox.store.set('who', { value: sandbox.id })))
  for (const sandbox of sandboxes) assert.match(await say(sandbox, look), new RegExp(sandbox.id))
  await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
})

test('a cell that died while it waited is not given out', async () => {
  await warm(small.server)
  for (const { pid } of liveOf(small).values()) process.kill(pid, 'SIGKILL')
  while ((await small.islet.info()).warm.ready > 0) await setTimeout(5)
  const sandboxes = await Promise.all(Array.from({ length: 4 }, () => small.create()))
  for (const sandbox of sandboxes) assert.equal(await say(sandbox, 'hostname'), sandbox.id)
  await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
  await warm(small.server)
  const { ready } = (await small.islet.info()).warm
  assert.equal(heldBy(small.server).cells, ready)
})

test('without a pool nothing waits', async () => {
  await using sandbox = await none.create()
  assert.deepEqual((await none.islet.info()).warm, { ready: 0, target: 0, min: 0, max: 0 })
  assert.equal(await say(sandbox, 'hostname'), sandbox.id)
  assert.equal(heldBy(none.server).cells, 1)
})

/** The layers of the server that have this file. */
function copiesOf(path: string): string[] {
  return globSync(join(small.server.dataDir, 'pool/layers/*/*', path))
}

/** The live cells of a server: which host uids they have, and their first processes. */
function liveOf({ server }: Suite): Map<string, { pid: number; uid: number }> {
  const directory = cellsDirectory(server)
  return new Map(
    cellsOf(server).flatMap((id) => {
      try {
        const { pid } = JSON.parse(readFileSync(`${directory}/${id}/cell.json`, 'utf8')).process
        const [, uid] = readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/\s+/)
        return [[id, { pid, uid: Number(uid) }] as const]
      } catch {
        // It is just being made or removed.
        return []
      }
    }),
  )
}

/** The one whose uids a sandbox has, by what it prints of its /proc/self/uid_map. */
function cellOf(suite: Suite, uidMap: string): string {
  const uid = Number(uidMap.trim().split(' ')[1])
  const found = [...liveOf(suite)].filter(([, cell]) => cell.uid === uid)
  assert.equal(found.length, 1, `one cell with uid ${uid}`)
  return found[0]![0]
}

/** The output of `ls -A` for several empty directories, and then a number. */
function lines(n: number): string {
  return `/dev/shm:\n\n/tmp:\n\n/workspace:\n${n}`
}
