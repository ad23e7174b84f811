// With engine `process`; what is about layers, owners and images is in tests/e2e/snapshots.test.ts.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { hasCode, Islet, type Sandbox } from '@islet/sdk'
import {
  type RawEntry,
  type RawFile,
  rawSnapshot,
  rawTar,
} from '../../src/control/saved/snapshot-file/testing.ts'
import { errorOf, startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

describe('snapshots as files', () => {
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
      'file over a link inside': tree({ path: 'layer/files/a', type: '2', link: 'b' }, into('layer/files/a')),
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
      await assert.rejects(islet.snapshots.import(rawSnapshot(content)), failsWith('snapshot_damaged'), name)
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

  it('of a larger machine are taken, and what is made from them has the limits of this one', async () => {
    const most = { memoryBytes: 2 ** 40, cpuMillis: 1_000_000, diskBytes: 2 ** 50, pids: 100 }
    const state = { ...(manifest.state as object), resources: most }
    const { id } = await islet.snapshots.import(
      rawSnapshot({ manifest: { ...manifest, state }, trees: { 'layer/files': [TOP] } }),
    )
    const { machine } = await islet.info()
    const copy = await islet.sandboxes.create({ snapshot: id })
    const { resources } = await copy.getInfo()
    assert.deepEqual(resources, { ...machine, pids: 100 })
    await copy.kill()
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
