// Directories through the files API: list, stat, move, copy, remove, archives.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { IsletError } from 'islet'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const sandbox = await suite.create()
const { files } = sandbox
const paths = async (path: string, options?: { depth?: number; limit?: number }): Promise<string[]> =>
  (await files.list(path, options)).map((entry) => entry.path)

test('a list goes as deep and as far as asked', async () => {
  await say(sandbox, 'mkdir -p tree/a/b/c && touch tree/1 tree/a/2 tree/a/b/3 tree/a/b/c/4')
  const home = '/home/user/tree'
  assert.deepEqual(await paths('tree'), [`${home}/1`, `${home}/a`])
  assert.deepEqual(await paths(`${home}/`, { depth: 2 }), [
    `${home}/1`,
    `${home}/a`,
    `${home}/a/2`,
    `${home}/a/b`,
  ])
  assert.equal((await paths('tree', { depth: 64 })).length, 7)
  assert.equal((await paths('tree', { depth: 64, limit: 3 })).length, 3)
  assert.ok(
    (await files.list()).some(({ name }) => name === 'tree'),
    'the working directory by default',
  )
  await failsWith(files.list('tree/1'), 'not_a_directory')
  await failsWith(files.list('none'), 'file_not_found')
})

test('a list of 20,000 files is whole', async () => {
  await say(sandbox, 'mkdir many && cd many && seq 20000 | xargs touch')
  assert.equal((await files.list('many')).length, 20_000)
  await files.remove('many')
  assert.equal(await files.exists('many'), false)
})

test('a stat follows symlinks unless told not to', async () => {
  await say(
    sandbox,
    'mkdir links && echo 12345 > links/file && ln -s file links/link && ln -s nowhere links/broken && ln -s loop links/loop',
  )
  const followed = await files.stat('links/link')
  assert.deepEqual([followed.type, followed.sizeBytes], ['file', 6])
  const link = await files.stat('links/link', { follow: false })
  assert.deepEqual([link.type, link.target], ['symlink', 'file'])
  await failsWith(files.stat('links/broken'), 'file_not_found')
  assert.equal((await files.stat('links/broken', { follow: false })).target, 'nowhere')
  assert.equal(await files.exists('links/broken'), true)
  await assert.rejects(files.read('links/loop'))
  const listed = await files.list('links')
  assert.deepEqual(
    listed.map(({ name, type }) => `${name} ${type}`),
    ['broken symlink', 'file file', 'link symlink', 'loop symlink'],
  )
  const age = Date.now() - Date.parse(followed.modifiedAt)
  assert.ok(age > -60_000 && age < 3_600_000)
})

test('relative paths start in the working directory, and dots are resolved', async () => {
  await files.write('rel/../rel/./a//b', 'x')
  assert.equal(await files.read('/home/user/rel/a/b'), 'x')
  assert.equal((await files.stat('../../etc/passwd')).path, '/etc/passwd')
  assert.equal((await files.stat('/../../../etc/passwd')).path, '/etc/passwd')
})

test('a directory is made with its parents, mode and owner', async () => {
  const made = await files.makeDir('made/deep/down', { mode: '0700' })
  assert.deepEqual([made.type, made.mode, made.uid], ['directory', '0700', 1000])
  await files.makeDir('made/deep/down')
  await failsWith(files.makeDir('made/deep/down', { parents: false }), 'file_exists')
  await failsWith(files.makeDir('none/deep', { parents: false }), 'file_not_found')
  assert.equal((await files.makeDir('/srv/rooted', { owner: 'root' })).uid, 0)
  await files.write('plain', '')
  await failsWith(files.makeDir('plain'), 'file_exists', 'not_a_directory')
})

test('a move takes a whole tree, and replaces only when told so', async () => {
  await say(sandbox, 'mkdir -p from/x && echo 1 > from/x/1 && echo 2 > taken')
  const moved = await files.move('from', 'to')
  assert.equal(moved.path, '/home/user/to')
  assert.equal(await files.read('to/x/1'), '1\n')
  assert.equal(await files.exists('from'), false)
  await failsWith(files.move('to/x/1', 'taken'), 'file_exists')
  await files.move('to/x/1', 'taken', { overwrite: true })
  assert.equal(await files.read('taken'), '1\n')
  await failsWith(files.move('none', 'x'), 'file_not_found')
  await assert.rejects(files.move('to', 'to/inside-itself'))
  await files.move('to', '/dev/shm/other-filesystem')
  assert.equal(await files.exists('/dev/shm/other-filesystem/x'), true)
})

test('a move, a copy and an overlay that fail name the path that is to blame', async () => {
  await say(sandbox, 'mkdir -p blame/tree && echo x > blame/file')
  const { overlay } = files
  const named = (call: Promise<unknown>, code: string, path: string) =>
    assert.rejects(call, (error: IsletError) => {
      assert.deepEqual([error.code, error.details?.path], [code, path], error.message)
      assert.ok(error.message.includes(`"${path}"`), error.message)
      return true
    })
  const home = '/home/user/blame'
  for (const verb of ['move', 'copy'] as const) {
    await named(files[verb]('blame/none', 'blame/to'), 'file_not_found', `${home}/none`)
    await named(files[verb]('blame/file', 'blame/no/to'), 'file_not_found', `${home}/no`)
    await named(files[verb]('blame/file', 'blame/file/to'), 'not_a_directory', `${home}/file/to`)
    await named(files[verb]('blame/file', 'blame/tree'), 'file_exists', `${home}/tree`)
    await named(files[verb]('blame/file', '/sys/to'), 'access_denied', '/sys/to')
  }
  await named(overlay.create({ source: `${home}/none`, target: 'to' }), 'file_not_found', `${home}/none`)
  const { id } = await overlay.create({ source: `${home}/tree`, target: '/sys/to' })
  const { copyStatus, copyError } = await overlay.waitForCompletion(id, { initialDelayMs: 50 })
  assert.deepEqual([copyStatus, copyError?.includes('"/sys/to"')], ['failed', true], copyError)
})

test('a copy keeps modes, links and content', async () => {
  await say(
    sandbox,
    'mkdir -p src/d && echo x > src/d/f && chmod 750 src/d/f && ln -s d/f src/l && head -c 3000000 /dev/urandom > src/big',
  )
  await files.copy('src', 'dst')
  const look = 'cd $D && find . | sort && sha256sum big d/f && stat -c "%a %U" d/f && readlink l'
  const [a, b] = await Promise.all(['src', 'dst'].map((D) => say(sandbox, look, { env: { D } })))
  assert.equal(a, b)
  await failsWith(files.copy('src/d/f', 'dst/d/f'), 'file_exists')
  await files.copy('src/d/f', 'dst/d/f', { overwrite: true })
  await assert.rejects(files.copy('src', 'src/again'))
  assert.ok((await paths('src', { depth: 64 })).length < 20, 'no endless copy into itself')
})

test('a remove takes trees, links but not their targets, and nothing else', async () => {
  await say(sandbox, 'mkdir -p rm/a/b keep && touch rm/a/b/c keep/me && ln -s ../../keep rm/a/link')
  await failsWith(files.remove('rm', { recursive: false }), 'directory_not_empty')
  await files.remove('rm')
  assert.equal(await files.exists('rm'), false)
  assert.equal(await files.exists('keep/me'), true)
  await failsWith(files.remove('rm'), 'file_not_found')
  await failsWith(files.remove('/'), 'invalid_path')
})

test('a tree goes out as an archive and comes back the same', async () => {
  await say(
    sandbox,
    `mkdir -p pack/empty pack/d && cd pack && echo x > d/f && chmod 741 d/f && ln -s d/f link && ln -s /etc abs &&
     head -c 5000000 /dev/urandom > big && touch "odd name
with line" $(printf 'n%.0s' $(seq 200)) && mkdir -p ${'deep/'.repeat(40)} && touch ${'deep/'.repeat(40)}leaf`,
  )
  const look = `cd $D && find . -printf '%p %y %m %s %l\\n' | grep -v ' d [0-7]* ' | sort && find . -type d | sort && sha256sum big d/f`
  for (const gzip of [true, false]) {
    const archive = await collect(await files.readArchive('pack', { gzip }))
    const tar = gzip ? gunzipSync(archive) : archive
    assert.equal(tar.subarray(257, 262).toString(), 'ustar')
    const { count } = await files.writeArchive(`unpacked-${gzip}`, archive)
    assert.ok(count >= 47, `${count} entries`)
    const [a, b] = await Promise.all(
      ['pack', `unpacked-${gzip}`].map((D) => say(sandbox, look, { env: { D } })),
    )
    assert.equal(a, b)
  }
  await files.writeArchive('/srv/owned', await collect(await files.readArchive('pack')), { owner: 'root' })
  assert.equal(await say(sandbox, 'stat -c %U /srv/owned/d/f'), 'root')
  await failsWith(files.readArchive('none'), 'file_not_found')
})

test('the archives of tar itself are understood, and the other way round', async () => {
  await say(
    sandbox,
    'mkdir made-by-tar && cd made-by-tar && echo t > t && ln -s t l && tar czf ../by-tar.tgz .',
  )
  await files.writeArchive('from-tar', await files.readBytes('by-tar.tgz'))
  assert.equal(await say(sandbox, 'cat from-tar/l'), 't')
  await files.write('ours.tgz', await files.readArchive('made-by-tar'))
  assert.equal(await say(sandbox, 'mkdir by-ours && tar xzf ours.tgz -C by-ours && cat by-ours/l'), 't')
})

test('an archive that is cut short is an error', async () => {
  const archive = await files.readBytes('by-tar.tgz')
  await failsWith(files.writeArchive('cut', archive.subarray(0, archive.length - 20)), 'bad_request')
})

async function collect(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of stream) pieces.push(piece)
  return Buffer.concat(pieces)
}
