// Snapshot files between two servers with data directories of their own, on a real engine: trees, images, crashes.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { hasCode, type Sandbox } from 'islet'
import { rawSnapshot } from '../../packages/server/src/control/saved/snapshot-file/testing.ts'
import { until } from '../coming-from/until.ts'
import { withServer } from '../faults/crash.ts'
import { copyProgram } from '../support/programs.ts'
import { type TestServer, WITHOUT_WARM } from '../support/server.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const ROOT = { user: 'root' }
/** Files of every kind, things of the image that are gone, replaced and moved, in both trees. */
const CHANGES = `
set -e
mkdir -p /srv/data/many "/srv/data/odd
name" && cd /srv/data
for i in $(seq 1000); do echo $i > many/$i; done
truncate -s 200M sparse && printf end | dd of=sparse bs=1M seek=150 conv=notrunc status=none
ln many/1 hard; ln -s /etc/passwd absolute; ln -s ../../.. dots; mkfifo fifo; echo x > 'ü'
cp /usr/bin/true setuid && chmod 6755 setuid && chown 1234:4321 many/2 && touch -d '2001-02-03 04:05:06.789' many/3
python3 -c "import os; os.setxattr('many/4', 'user.note', b'a\\0b\\nc')"
python3 -c "import os; os.setxattr('many/5', 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000'))"
rm -rf /etc/skel && mv /var/log /var/logs && rm -rf /var/lib/dpkg && mkdir /var/lib/dpkg && echo new > /var/lib/dpkg/own
echo '#!/bin/sh' > /usr/local/bin/own && chmod 755 /usr/local/bin/own && rm -f /usr/bin/yes && mv /usr/share/zoneinfo /usr/share/zones
`
/** Everything that a file can have, of all that was touched. */
const HASH = `
import hashlib, os, stat
out = []
def see(path):
    s = os.lstat(path)
    line = [path, oct(s.st_mode), s.st_uid, s.st_gid]
    line += sorted((n, os.getxattr(path, n, follow_symlinks=False).hex()) for n in os.listxattr(path, follow_symlinks=False))
    if not stat.S_ISDIR(s.st_mode): line += [s.st_nlink, s.st_size]
    if path.startswith('/srv/'): line.append(s.st_mtime_ns) # the images were made at different times
    if stat.S_ISLNK(s.st_mode): line.append(os.readlink(path))
    if stat.S_ISREG(s.st_mode): line.append(hashlib.sha256(open(path, 'rb').read()).hexdigest())
    out.append(repr(line))
    if stat.S_ISDIR(s.st_mode):
        for name in sorted(os.listdir(path)): see(path + '/' + name)
for top in ['/srv', '/var', '/usr/local', '/usr/share/zones', '/home', '/etc/apt']: see(top)
out.append(repr([sorted(os.listdir(d)) for d in ['/', '/etc', '/usr/bin', '/usr/share']]))
out.append(str(os.lstat('/srv/data/sparse').st_blocks < 100000))
print(len(out), hashlib.sha256('\\n'.join(out).encode()).hexdigest())
`
const hashOf = async (sandbox: Sandbox) => say(sandbox, `python3 - <<'END'\n${HASH}\nEND`, ROOT)

/** This server stacks layers; the other server has the best storage of this machine. */
const STACKED = { env: { ...WITHOUT_WARM, ISLET_STORAGE: 'copy', ISLET_IMPORT_DIRS: tmpdir() } }
const [here, there] = [await startSuite(STACKED), await startSuite({ env: WITHOUT_WARM })]
const scratch = mkdtempSync(join(tmpdir(), 'islet-test-'))
after(() => rmSync(scratch, { recursive: true }))
const file = async (ref: string) =>
  Buffer.from(await new Response(await here.islet.snapshots.export(ref)).bytes())
const layersOf = ({ dataDir }: TestServer) =>
  readdirSync(join(dataDir, 'pool/layers')).filter((name) => !name.startsWith('.tmp-'))

test('a snapshot goes to another server with its files, store, env, services and settings', {
  timeout: 300_000,
}, async () => {
  const first = await here.create({
    env: { COLOR: 'red' },
    resources: { memory: '300Mi' },
    metadata: { a: 1 },
  })
  await say(first, CHANGES, ROOT)
  await first.createSnapshot({ tag: 'one' })
  // On two layers, the upper of which takes things of the lower away.
  const second = await here.islet.sandboxes.create({
    snapshot: 'one',
    workdir: '/srv/data',
    timeout: { idle: '1h' },
  })
  await say(
    second,
    'rm -r /srv/data/many/9* && mv /srv/data/many /srv/data/fewer && echo secret > /srv/x && rm /srv/x',
    ROOT,
  )
  await second.store.set('list', { value: [1, { two: 'ü' }] })
  await second.store.batch(Array.from({ length: 500 }, (_, i) => ({ op: 'set', key: `key-${i}`, value: i })))
  const echo = 'while :; do echo $COLOR > /tmp/served; sleep 1; done'
  await second.service.start({ name: 'echo', start: echo, environment: { B: 'c' } })
  const snapshot = await second.createSnapshot({
    name: 'The second',
    tag: 'two',
    description: 'Of two layers.',
  })
  const before = layersOf(here.server).sort()
  const bytes = await file('two')
  assert.deepEqual(layersOf(here.server).sort(), before)
  assert.ok(bytes.length < 40_000_000, `${bytes.length}`)

  const made = await there.islet.snapshots.import(bytes, { tag: 'from-elsewhere' })
  assert.notEqual(made.id, snapshot.id)
  assert.deepEqual(
    [made.name, made.description, made.tag],
    ['The second', 'Of two layers.', 'from-elsewhere'],
  )
  const copy = await there.islet.sandboxes.create({ snapshot: 'from-elsewhere' })
  assert.equal(await hashOf(copy), await hashOf(second))
  assert.equal(await say(copy, 'pwd; echo $COLOR; ls /srv/data/fewer | wc -l'), '/srv/data\nred\n889')
  assert.deepEqual((await copy.store.get('list')).value, [1, { two: 'ü' }])
  assert.equal((await copy.store.get('key-499')).value, 499)
  const [mine, theirs] = [await copy.getInfo(), await second.getInfo()]
  for (const field of ['resources', 'timeouts', 'user', 'workdir', 'network', 'env', 'runtime'] as const)
    assert.deepEqual(mine[field], theirs[field], field)
  const service = await copy.service.waitFor('echo', 'running')
  assert.deepEqual([service.start, service.environment], [echo, { B: 'c' }])

  // And on from there.
  await say(copy, 'echo more > /srv/more', ROOT)
  const further = await copy.createSnapshot()
  assert.equal(further.parentId, made.id)
  await there.islet.snapshots.delete(made.id)
  const last = await there.islet.sandboxes.create({ snapshot: further.id })
  assert.equal(await say(last, 'cat /srv/more /srv/data/fewer/1'), 'more\n1')
  assert.equal((await there.islet.snapshots.lineage(further.id)).lineage[1]?.deleted, true)
})

test('an image that is not the machine’s own goes along, is used by all who import it, and goes with the last', {
  timeout: 300_000,
}, async () => {
  const root = join(scratch, 'root')
  for (const directory of ['bin', 'etc', 'tmp']) mkdirSync(join(root, directory), { recursive: true })
  for (const name of ['sh', 'cat', 'rm', 'id']) copyProgram(`/bin/${name}`, root)
  await here.islet.images.import({ kind: 'directory', path: root, name: 'tiny' })
  const sandbox = await here.islet.sandboxes.create({ runtime: 'tiny' })
  await say(sandbox, 'echo mine > /etc/mine; rm /bin/id', ROOT)
  await sandbox.createSnapshot({ tag: 'tiny' })
  const bytes = await file('tiny')
  const imagesBefore = (await there.islet.images.list()).length
  const [one, two] = await Promise.all([
    there.islet.snapshots.import(bytes),
    there.islet.snapshots.import(bytes),
  ])
  assert.equal((await there.islet.images.list()).length, imagesBefore + 1)
  for (const { id } of [one, two]) {
    const copy = await there.islet.sandboxes.create({ snapshot: id })
    assert.equal(await say(copy, 'cat /etc/mine; echo /bin/*'), 'mine\n/bin/cat /bin/rm /bin/sh')
    await copy.kill()
  }
  await there.islet.snapshots.delete(one.id)
  await there.islet.images.collect()
  const copy = await there.islet.sandboxes.create({ snapshot: two.id })
  assert.equal(await say(copy, 'cat /etc/mine'), 'mine')
  await copy.kill()
  await there.islet.snapshots.delete(two.id)
  await there.islet.images.collect()
  assert.equal((await there.islet.images.list()).length, imagesBefore)
})

test('a layer may hold whiteouts and marks, and nothing else of that kind', {
  timeout: 120_000,
}, async () => {
  const { id } = await (await here.create()).createSnapshot()
  const tar = zstdDecompressSync(await file(id))
  const about = JSON.parse(execFileSync('tar', ['-xO', 'manifest.json'], { input: tar }).toString())
  const manifest = { ...about, layer: ['root'] }
  const top = { path: 'layer/root/', type: '5' }
  const marked = (name: string, value: string) => ({
    ...top,
    pax: { [`SCHILY.xattr.trusted.overlay.${name}`]: value },
  })
  const tree = (...entries: object[]) => rawSnapshot({ manifest, trees: { 'layer/root': entries as never } })
  const before = layersOf(there.server)
  for (const bytes of [
    tree(top, { path: 'layer/root/a', type: '3', device: [1, 3] }),
    tree(marked('redirect', '/../..')),
    tree(marked('redirect', 'a/b')),
    tree(marked('metacopy', 'y')),
    tree(marked('opaque', 'z')),
  ])
    await assert.rejects(there.islet.snapshots.import(bytes), (error) => hasCode(error, 'snapshot_damaged'))
  assert.deepEqual(layersOf(there.server), before)
  const good = tree(top, { path: 'layer/root/srv', type: '3' }, { path: 'layer/root/mine', content: 'mine' })
  const made = await there.islet.snapshots.import(good)
  const copy = await there.islet.sandboxes.create({ snapshot: made.id })
  assert.equal(await say(copy, 'cat /mine; ls -d /srv 2>/dev/null || echo gone', ROOT), 'minegone')
  await copy.kill()
  await there.islet.snapshots.delete(made.id)

  const other = { ...manifest, image: { kind: 'host', digest: '0'.repeat(64), system: 'plan9 4' } }
  const elsewhere = rawSnapshot({ manifest: other, trees: { 'layer/root': [top] } })
  await assert.rejects(there.islet.snapshots.import(elsewhere), (error) => hasCode(error, 'conflict'))
  const forced = await there.islet.snapshots.import(elsewhere, { otherHost: true })
  await there.islet.snapshots.delete(forced.id)
  assert.deepEqual(layersOf(there.server), before)
})

test('a file that would fill the disk is refused, and gives the room back', {
  timeout: 300_000,
}, async () => {
  const big = await here.create()
  await say(big, "head -c 300000000 /dev/zero | tr '\\0' x > /srv/big", ROOT)
  const { id } = await big.createSnapshot()
  const bytes = await file(id)
  await Promise.all([big.kill(), here.islet.snapshots.delete(id)])
  assert.ok(bytes.length < 1_000_000)
  await withServer(
    async (server) => {
      // Else what is deleted comes back only when its blocks have been discarded.
      execFileSync('mount', ['-o', 'remount,nodiscard', join(server.dataDir, 'pool')])
      const islet = server.islet()
      const sandbox = await islet.sandboxes.create({ runtime: 'host' })
      const before = layersOf(server)
      await assert.rejects(islet.snapshots.import(bytes), (error) => hasCode(error, 'server_disk_full'))
      assert.deepEqual(layersOf(server), before)
      // btrfs gives the space of what was deleted back a little later.
      const writes = 'head -c 5000000 /dev/zero > /srv/room && sync /srv/room'
      await until(async () => (await sandbox.exec.run(writes, ROOT)).exitCode === 0)
    },
    { env: { ISLET_POOL_SIZE: '256Mi' } },
  )
})

test('an export or import that a crash cut off leaves nothing, and works the next time', {
  timeout: 300_000,
}, async () => {
  await withServer(async (server) => {
    const islet = () => server.islet()
    const made = await islet().sandboxes.create({ runtime: 'host' })
    await say(made, 'head -c 20000000 /dev/urandom > /srv/noise', ROOT)
    await made.createSnapshot({ tag: 'one' })
    const next = await islet().sandboxes.create({ snapshot: 'one' })
    await say(next, 'echo two > /srv/two', ROOT)
    await next.createSnapshot({ tag: 'two' })
    await Promise.all([made.kill(), next.kill()])
    const layers = layersOf(server).sort()
    const snapshots = (await islet().snapshots.list()).total

    const reader = (await islet().snapshots.export('two')).getReader()
    await reader.read()
    assert.equal(layersOf(server).length, layers.length + 1, 'the two layers are merged for the file')
    await server.kill()
    await reader.cancel().catch(() => {})
    await server.start()
    assert.deepEqual(layersOf(server).sort(), layers)
    const bytes = Buffer.from(await new Response(await islet().snapshots.export('two')).bytes())
    assert.deepEqual(layersOf(server).sort(), layers)

    for (const part of [0.1, 0.5, 0.99]) {
      const sent = Promise.withResolvers<void>()
      const cut = async function* () {
        yield bytes.subarray(0, bytes.length * part)
        sent.resolve()
        await new Promise(() => {})
      }
      const importing = islet()
        .snapshots.import(cut())
        .catch(() => 'cut')
      await sent.promise
      await server.kill()
      assert.equal(await importing, 'cut')
      await server.start()
      assert.deepEqual(layersOf(server).sort(), layers)
      assert.equal((await islet().snapshots.list()).total, snapshots)
    }
    const { id } = await islet().snapshots.import(bytes)
    await server.kill()
    await server.start()
    const copy = await islet().sandboxes.create({ snapshot: id })
    assert.equal(await say(copy, 'cat /srv/two; wc -c < /srv/noise'), 'two\n20000000')
    await copy.kill()
    for (const ref of ['one', 'two', id]) await islet().snapshots.delete(ref)
    assert.deepEqual(layersOf(server), [])
    await server.stop()
    using db = new DatabaseSync(join(server.dataDir, 'islet.db'), { readOnly: true })
    for (const table of ['snapshots', 'saved_states', 'saved_store', 'layers_held'])
      assert.deepEqual(
        db.prepare(`SELECT count(*) AS rows FROM ${table}`).get(),
        { __proto__: null, rows: 0 },
        table,
      )
    assert.deepEqual(
      readdirSync(join(server.dataDir, 'images')).filter((name) => name.startsWith('.tmp-')),
      [],
    )
  }, STACKED)
})
