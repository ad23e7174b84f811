// With engine `process`; what is about layers, owners and images is in tests/e2e/snapshots.test.ts.
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { EventPage } from '@islet/contract'
import { hasCode, Islet, type Sandbox, type SnapshotInfo } from '@islet/sdk'
import { errorOf, startTestApi, TEST_KEY, type TestApi } from '../support/server.ts'

describe('snapshots', () => {
  let api: TestApi
  let islet: Islet
  let sandbox: Sandbox
  let workdir: string
  before(async () => {
    api = await startTestApi()
    islet = new Islet({ url: api.url, apiKey: TEST_KEY })
    sandbox = await islet.sandboxes.create({ env: { COLOR: 'red' }, name: 'source' })
    workdir = (await sandbox.getInfo()).workdir
    writeFileSync(join(workdir, 'file'), 'as it was')
    mkdirSync(join(workdir, 'deep/er'), { recursive: true })
    symlinkSync('/nowhere', join(workdir, 'deep/link'))
    await sandbox.store.set('key', { value: { nested: ['ü'] } })
  })
  after(() => api[Symbol.asyncDispose]())

  const failsWith = (code: Parameters<typeof hasCode>[1]) => (error: unknown) => hasCode(error, code)

  it('have a name, a description and a tag, and are found by id and tag', async () => {
    const made = await sandbox.createSnapshot({ name: 'A name', tag: 'v1', description: 'What it is.' })
    assert.deepEqual([made.name, made.tag, made.description], ['A name', 'v1', 'What it is.'])
    assert.deepEqual([made.sandboxId, made.checkpointId, made.parentId], [sandbox.id, null, null])
    assert.equal((await islet.snapshots.get(made.id)).id, made.id)
    assert.equal((await islet.snapshots.get('v1')).id, made.id)
    const { snapshots, total } = await islet.snapshots.list({ name: 'A name' })
    assert.deepEqual([snapshots.map(({ id }) => id), total], [[made.id], 1])
    await islet.snapshots.delete('v1')
    const { events } = (await (
      await api.call('GET', `/v1/sandboxes/${sandbox.id}/events`)
    ).json()) as EventPage
    const told = events
      .filter(({ type }) => type.startsWith('snapshot.'))
      .map(({ type, data }) => [type, data.id])
    assert.deepEqual(told.sort(), [
      ['snapshot.created', made.id],
      ['snapshot.deleted', made.id],
    ])
    await assert.rejects(islet.snapshots.get('v1'), failsWith('snapshot_not_found'))
    await assert.rejects(islet.snapshots.get('../sandboxes'), failsWith('snapshot_not_found'))
  })

  it('are bases for new sandboxes, which take everything over but what is given', async () => {
    const { id } = await sandbox.createSnapshot({ tag: 'base-1' })
    const copy = await islet.sandboxes.create({ snapshot: 'base-1', env: { SIZE: 'xl' } })
    const { stdout } = await copy.exec.run('cat file; echo " $COLOR $SIZE"')
    assert.equal(stdout, 'as it was red xl\n')
    assert.deepEqual((await copy.store.get('key')).value, { nested: ['ü'] })
    assert.deepEqual((await copy.getInfo()).origin, { kind: 'snapshot', id })
    await copy.kill()
    const both = { snapshot: 'base-1', runtime: 'host' }
    await assert.rejects(islet.sandboxes.create(both), failsWith('bad_request'))
    await assert.rejects(islet.sandboxes.create({ snapshot: 'no-such' }), failsWith('snapshot_not_found'))
  })

  it('are made of checkpoints too, and keep what these saved', async () => {
    const { id: checkpoint } = await sandbox.createCheckpoint('for a snapshot')
    writeFileSync(join(workdir, 'file'), 'changed since')
    const made = await islet.snapshots.create({ checkpoint }, { name: 'of it' })
    assert.deepEqual([made.checkpointId, made.sandboxId], [checkpoint, sandbox.id])
    await sandbox.deleteCheckpoint(checkpoint)
    const copy = await islet.sandboxes.create({ snapshot: made.id })
    assert.equal((await copy.exec.run('cat file')).stdout, 'as it was')
    await copy.kill()
    writeFileSync(join(workdir, 'file'), 'as it was')
    await assert.rejects(islet.snapshots.create({ checkpoint }), failsWith('checkpoint_not_found'))
    const { code } = await errorOf(
      await api.call('POST', '/v1/snapshots', { checkpoint, sandbox: sandbox.id }),
    )
    assert.equal(code, 'bad_request')
  })

  it('give their tag to the next one that wants it, to exactly one of many at once', async () => {
    const made = await Promise.all(Array.from({ length: 4 }, () => sandbox.createSnapshot({ tag: 'moves' })))
    const wishes = Array.from({ length: 40 }, (_, i) => islet.snapshots.tag(made[i % 4]!.id, 'moves'))
    for (const { tag } of await Promise.all(wishes)) assert.equal(tag, 'moves')
    const now = await Promise.all(made.map(({ id }) => islet.snapshots.get(id)))
    assert.equal(now.filter(({ tag }) => tag === 'moves').length, 1)
    const owner = await islet.snapshots.get('moves')
    assert.equal((await islet.snapshots.tag('moves', null)).id, owner.id)
    await assert.rejects(islet.snapshots.get('moves'), failsWith('snapshot_not_found'))
    const changed = await islet.snapshots.update(owner.id, { name: 'new', description: null })
    assert.deepEqual([changed.name, changed.description, changed.tag], ['new', null, null])
    await assert.rejects(islet.snapshots.tag(owner.id, made[0]!.id), failsWith('bad_request'))
    await Promise.all(made.map(({ id }) => islet.snapshots.delete(id)))
  })

  it('know what they descend from over sandboxes, forks and checkpoints, also what was deleted, until nobody needs it', async () => {
    const next = async (ref: string): Promise<SnapshotInfo> => {
      const child = await islet.sandboxes.create({ snapshot: ref })
      const fork = await child.fork()
      const { id: checkpoint } = await fork.createCheckpoint('now')
      const made = await islet.snapshots.create({ checkpoint })
      await fork.deleteCheckpoint(checkpoint)
      await Promise.all([child.kill(), fork.kill()])
      return made
    }
    const first = await sandbox.createSnapshot({ tag: 'first' })
    const second = await next('first')
    const third = await next(second.id)
    const cousin = await next('first')
    assert.equal(third.parentId, second.id)
    const ids = (entries: { id: string }[]) => entries.map(({ id }) => id)
    assert.deepEqual(ids((await islet.snapshots.lineage(third.id)).lineage), [third.id, second.id, first.id])
    const below = (await islet.snapshots.lineage('first')).children
    assert.deepEqual(new Set(ids(below)), new Set([second.id, third.id, cousin.id]))
    assert.ok(ids(below).indexOf(second.id) < ids(below).indexOf(third.id))

    await islet.snapshots.delete(second.id)
    await islet.snapshots.delete('first')
    const { lineage } = await islet.snapshots.lineage(third.id)
    assert.deepEqual(
      lineage.map(({ id, deleted }) => [id, deleted]),
      [
        [third.id, false],
        [second.id, true],
        [first.id, true],
      ],
    )
    await assert.rejects(islet.snapshots.get(second.id), failsWith('snapshot_not_found'))
    // A sandbox of a deleted snapshot still is what the next one descends from.
    const late = await islet.sandboxes.create({ snapshot: cousin.id })
    await islet.snapshots.delete(cousin.id)
    const last = await late.createSnapshot()
    assert.deepEqual(ids((await islet.snapshots.lineage(last.id)).lineage), [last.id, cousin.id, first.id])
    await late.kill()
    for (const { id } of [third, last]) await islet.snapshots.delete(id)
    await assert.rejects(islet.snapshots.lineage(first.id), failsWith('snapshot_not_found'))
  })

  it('are for the key alone', async () => {
    const { token } = await sandbox.getToken()
    const asSandbox = { headers: { Authorization: `Bearer ${token}` } }
    for (const [method, path] of [
      ['GET', '/v1/snapshots'],
      ['POST', '/v1/snapshots'],
      ['POST', '/v1/snapshots/import'],
      ['GET', '/v1/snapshots/base-1/export'],
    ] as const)
      assert.equal((await api.call(method, path, undefined, asSandbox)).status, 403)
    await assert.rejects(
      new Islet({ url: api.url, token }).sandboxes.connect(sandbox.id).then((own) => own.fork()),
      (error: unknown) => hasCode(error, 'forbidden') && /API key/.test(error.hint ?? ''),
    )
  })
})
