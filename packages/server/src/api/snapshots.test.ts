// With engine `process`; what is about layers, owners and images is in tests/e2e/snapshots.test.ts.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { EventPage } from '@islet/contract'
import { hasCode, Islet, type Sandbox, type SnapshotInfo } from 'islet'
import { type RawEntry, type RawFile, rawSnapshot, rawTar } from '../control/snapshot-file/testing.ts'
import { errorOf, startTestApi, TEST_KEY, type TestApi, until } from './testing.ts'

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
  const layers = () => readdirSync(join(api.dataDir, 'workspaces')).sort()
  const exported = async (ref: string) =>
    Buffer.from(await new Response(await islet.snapshots.export(ref)).bytes())

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

  describe('as files', () => {
    let file: Buffer
    let manifest: { layer: string[]; image: { home: string } } & Record<string, unknown>
    const TOP: RawEntry = { path: 'layer/files/', type: '5' }
    before(async () => {
      await sandbox.createSnapshot({ name: 'to go', tag: 'to-go', description: 'for elsewhere' })
      file = await exported('to-go')
      const tar = zstdDecompressSync(file)
      manifest = JSON.parse(execFileSync('tar', ['-xO', 'manifest.json'], { input: tar }).toString())
    })

    it('are whole: what is imported is what was exported', async () => {
      const made = await islet.snapshots.import(file)
      assert.deepEqual([made.name, made.tag, made.description], ['to go', null, 'for elsewhere'])
      assert.deepEqual([made.sandboxId, made.parentId], [null, null])
      const copy = await islet.sandboxes.create({ snapshot: made.id })
      const { workdir: there } = await copy.getInfo()
      execFileSync('diff', ['-r', '--no-dereference', workdir, there])
      assert.equal((await copy.exec.run('pwd; echo $COLOR')).stdout, `${there}\nred\n`)
      assert.deepEqual((await copy.store.get('key')).value, { nested: ['ü'] })
      await copy.kill()
      const named = await islet.snapshots.import(file, { name: 'mine', tag: 'to-go' })
      assert.deepEqual([named.name, (await islet.snapshots.get('to-go')).id], ['mine', named.id])
      for (const { id } of [made, named]) await islet.snapshots.delete(id)
    })

    it('are described by HEAD, and there is none of what does not exist', async () => {
      const { id } = await sandbox.createSnapshot()
      const head = await api.call('HEAD', `/v1/snapshots/${id}/export`)
      assert.equal(head.headers.get('content-disposition'), `attachment; filename="${id}.tar.zst"`)
      assert.equal(
        (await errorOf(await api.call('GET', '/v1/snapshots/none/export'))).code,
        'snapshot_not_found',
      )
      await islet.snapshots.delete(id)
    })

    /** Some bits of zstd are of no account. */
    const meansTheSame = (other: Buffer) => {
      try {
        return zstdDecompressSync(other).equals(zstdDecompressSync(file))
      } catch {
        return false
      }
    }

    it('are refused when a byte is missing or another, and leave nothing', async () => {
      const before = { layers: layers(), total: (await islet.snapshots.list()).total }
      for (let at = 0; at < file.length; at += Math.ceil(file.length / 25)) {
        await assert.rejects(islet.snapshots.import(file.subarray(0, at)), failsWith('snapshot_damaged'))
        const flipped = Buffer.from(file)
        flipped[at]! ^= 0x10
        if (meansTheSame(flipped)) continue
        await assert.rejects(islet.snapshots.import(flipped), failsWith('snapshot_damaged'))
      }
      // However much is still to come, the answer arrives.
      const endless = async function* () {
        for (let i = 0; i < 1000; i++) yield randomBytes(64 * 1024)
      }
      await assert.rejects(islet.snapshots.import(endless()), failsWith('snapshot_damaged'))
      const tar = zstdDecompressSync(file)
      const lastBlock = tar.indexOf('checksums.json') + 512
      for (let at = 0; at < lastBlock; at += Math.ceil(lastBlock / 25)) {
        const flipped = Buffer.from(tar)
        flipped[at]! ^= 0x01
        const refused = (error: unknown) => hasCode(error, 'snapshot_damaged', 'not_supported')
        await assert.rejects(islet.snapshots.import(zstdCompressSync(flipped)), refused, `${at}`)
      }
      assert.deepEqual({ layers: layers(), total: (await islet.snapshots.list()).total }, before)
    })

    it('are refused when they are hostile, and leave nothing', async () => {
      const before = { layers: layers(), total: (await islet.snapshots.list()).total }
      const outside = join(api.dataDir, 'escaped')
      const tree = (...entries: RawEntry[]): RawFile => ({
        manifest,
        trees: { 'layer/files': [TOP, ...entries] },
      })
      const into = (path: string): RawEntry => ({ path, content: 'x' })
      const attribute = (name: string, value = 'y') => ({
        ...into('layer/files/a'),
        pax: { [`SCHILY.xattr.${name}`]: value },
      })
      const files: Record<string, RawFile> = {
        'absolute path': tree(into(outside)),
        'absolute path below the tree': tree(into(`layer/files/${outside}`)),
        'path with ..': tree(into('layer/files/../../escaped')),
        'path with .. in the middle': tree(
          { path: 'layer/files/a', type: '5' },
          into('layer/files/a/../../../escaped'),
        ),
        'path with .. in an attribute': tree({ ...into('layer/files/a'), pax: { path: '../escaped' } }),
        'path of a sparse file': tree({
          ...into('layer/files/a'),
          pax: { 'GNU.sparse.major': '1', 'GNU.sparse.minor': '0', 'GNU.sparse.name': outside },
        }),
        'another tree': tree(into('layer/usr/a')),
        'file through a link': tree(
          { path: 'layer/files/a', type: '2', link: api.dataDir },
          into('layer/files/a/escaped'),
        ),
        'directory in place of a link': tree(
          { path: 'layer/files/a', type: '2', link: 'b' },
          { path: 'layer/files/a/', type: '5' },
          into('layer/files/a/escaped'),
        ),
        'file written twice': tree(into('layer/files/a'), into('layer/files/a')),
        'file over a link': tree({ path: 'layer/files/a', type: '2', link: outside }, into('layer/files/a')),
        'file over a link inside': tree(
          { path: 'layer/files/a', type: '2', link: 'b' },
          into('layer/files/a'),
        ),
        'hard link to outside': tree({ path: 'layer/files/a', type: '1', link: '/etc/passwd' }),
        'hard link with ..': tree({ path: 'layer/files/a', type: '1', link: 'layer/files/../../x' }),
        'hard link through a link': tree(
          { path: 'layer/files/a', type: '2', link: api.dataDir },
          { path: 'layer/files/b', type: '1', link: 'layer/files/a/islet.db' },
        ),
        'hard link through a link with ..': tree(
          { path: 'layer/files/a', type: '2', link: '../../..' },
          { path: 'layer/files/b', type: '1', link: 'layer/files/a/islet.db' },
        ),
        'hard link to nothing': tree({ path: 'layer/files/a', type: '1', link: 'layer/files/none' }),
        'character device': tree({ path: 'layer/files/a', type: '3', device: [1, 3] }),
        'block device': tree({ path: 'layer/files/a', type: '4', device: [8, 0] }),
        'unknown type': tree({ path: 'layer/files/a', type: '7' }),
        'global attributes': tree({ path: 'pax', type: 'g', content: '' }),
        'no top': { manifest, trees: { 'layer/files': [into('layer/files/a')] } },
        'top that is a link': {
          manifest,
          trees: { 'layer/files': [{ path: 'layer/files', type: '2', link: api.dataDir }] },
        },
        'directory that is left out': tree(into('layer/files/a/b')),
        'trusted attribute': tree(attribute('trusted.overlay.metacopy')),
        'mark on a file': tree(attribute('trusted.overlay.opaque')),
        'security attribute': tree(attribute('security.selinux')),
        'unknown attribute': tree({ ...into('layer/files/a'), pax: { 'GNU.dumpdir': 'x' } }),
        'owner in another form': tree({ ...into('layer/files/a'), uid: '\x80\0\0\0\0\0\0\x01' }),
        'owner of spaces': tree({ ...into('layer/files/a'), uid: ' '.repeat(8) }),
        'size that is none': tree({ ...into('layer/files/a'), pax: { size: '-1' } }),
        'no manifest': { manifest: { format: 'other' }, trees: {} },
        'manifest with a strange tree': { manifest: { ...manifest, layer: ['../escaped'] }, trees: {} },
        'manifest with a tree of no image': {
          manifest: { ...manifest, layer: ['files', 'files'] },
          trees: { 'layer/files': [TOP] },
        },
        'manifest without a tree': { manifest: { ...manifest, layer: [] }, trees: {} },
        'environment that is none': {
          manifest: { ...manifest, state: { ...(manifest.state as object), env: { 'A=B': 'c' } } },
          trees: {},
        },
        'more memory than a sandbox may have': {
          manifest: {
            ...manifest,
            state: {
              ...(manifest.state as object),
              resources: { memoryBytes: 2 ** 50, cpuMillis: 1000, diskBytes: 2 ** 30, pids: 100 },
            },
          },
          trees: { 'layer/files': [TOP] },
        },
        'more processes than a sandbox may have': {
          manifest: {
            ...manifest,
            state: {
              ...(manifest.state as object),
              resources: { memoryBytes: 2 ** 30, cpuMillis: 1000, diskBytes: 2 ** 30, pids: 2 ** 40 },
            },
          },
          trees: { 'layer/files': [TOP] },
        },
        'working directory with a NUL': {
          manifest: { ...manifest, state: { ...(manifest.state as object), workdir: '/a\0b' } },
          trees: { 'layer/files': [TOP] },
        },
        'store that is none': { manifest, store: 'nonsense\n', trees: { 'layer/files': [TOP] } },
        'store with a value that is none': {
          manifest,
          store: '{"key":"a","value":"{","expiresAt":null}\n',
          trees: { 'layer/files': [TOP] },
        },
        'wrong checksums': { ...tree(), sums: [] },
        'something at the end': { ...tree(), more: [into('layer/files/late')] },
        'a file that is not in the manifest': {
          manifest,
          trees: { 'layer/files': [TOP], 'layer/more': [{ path: 'layer/more/', type: '5' }] },
        },
      }
      for (const [name, content] of Object.entries(files))
        await assert.rejects(
          islet.snapshots.import(rawSnapshot(content)),
          failsWith('snapshot_damaged'),
          name,
        )
      for (const [name, content] of Object.entries({
        'another version': { ...manifest, version: 2 },
        'another machine': { ...manifest, arch: 'vax' },
        'another engine': {
          ...manifest,
          image: { kind: 'host', digest: '0'.repeat(64), system: 'debian 12' },
        },
      })) {
        const refused = islet.snapshots.import(rawSnapshot({ manifest: content, trees: {} }))
        await assert.rejects(refused, failsWith('not_supported'), name)
      }
      const plain = islet.snapshots.import(rawTar(tree()))
      await assert.rejects(plain, failsWith('snapshot_damaged'), 'not compressed')
      assert.ok(!existsSync(outside))
      assert.deepEqual({ layers: layers(), total: (await islet.snapshots.list()).total }, before)
      // The same with nothing wrong in it is taken.
      const { id } = await islet.snapshots.import(rawSnapshot(tree(into('layer/files/a'))))
      await islet.snapshots.delete(id)
    })

    it('stop when the client goes away, and leave nothing', async () => {
      const big = await islet.sandboxes.create()
      await big.exec.run('head -c 30000000 /dev/urandom > noise')
      const { id } = await big.createSnapshot()
      await big.kill()
      const before = layers()
      const abort = new AbortController()
      const reader = (await islet.snapshots.export(id, { signal: abort.signal })).getReader()
      await reader.read()
      // It is in use: deleting it takes it away only once nobody reads it.
      await islet.snapshots.delete(id)
      assert.deepEqual(layers(), before)
      abort.abort()
      await assert.rejects(async () => {
        for (;;) await reader.read()
      })
      await until(() => layers().length === before.length - 1)

      const half = async function* () {
        yield file.subarray(0, file.length / 2)
        await new Promise(() => {})
      }
      const cut = new AbortController()
      const importing = islet.snapshots.import(half(), { signal: cut.signal })
      await until(() => layers().length >= before.length - 1)
      cut.abort()
      await assert.rejects(importing)
      await until(() => layers().length === before.length - 1)
      assert.equal((await islet.snapshots.list({ name: 'to go' })).total, 1)
    })
  })
})
