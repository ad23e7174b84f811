import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Image } from './image.ts'
import { overlayMarks, plant, scratch, tarOf } from './scratch.ts'

const ROOT = [
  { name: './', type: '5' },
  { name: './etc/', type: '5' },
  {
    name: './etc/passwd',
    content: 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
    mode: 0o644,
  },
  { name: './etc/group', content: 'root:x:0:\nnode:x:1000:\n', mode: 0o644 },
  { name: './bin/tool', content: 'tool', mode: 0o4755, uid: 33 },
] as const

for (const [kind, argv] of Object.entries({
  plain: ['cat'],
  gzip: ['gzip', '-c'],
  zstd: ['zstd', '-qc'],
  xz: ['xz', '-c'],
})) {
  test(`a ${kind} tar becomes an image with its ids and modes, and a user on top`, async () => {
    await using dir = await scratch()
    const path = join(dir.path, 'root:fs.tar')
    await writeFile(path, execFileSync(argv[0]!, argv.slice(1), { input: tarOf(ROOT) }))
    const images = dir.images()
    const image = await images.import({ kind: 'tar', path }, { name: 'mine' })
    assert.equal((await images.resolve('mine')).name, image.name)
    const at = (tree: string, file: string) => join(dir.path, 'images', image.name, tree, file)
    const tool = await lstat(at('root', 'bin/tool'))
    assert.deepEqual([tool.uid, tool.gid, tool.mode & 0o7777], [33, 33, 0o4755])
    assert.match(await readFile(at('root', 'etc/passwd'), 'utf8'), /^root.*\nnode.*\n$/)
    // The first row of an id decides its name.
    assert.match(
      await readFile(at('adapt', 'etc/passwd'), 'utf8'),
      /^root.*\nuser:x:1000:1000::\/home\/user:\/bin\/sh\nnode.*\n$/,
    )
    assert.equal((await lstat(at('adapt', 'home/user'))).uid, 1000)
    assert.equal((await lstat(at('adapt', 'workspace'))).mode & 0o777, 0o777)
    assert.deepEqual(
      image.trees[0]?.lowers.map((lower) => lower.kind === 'image' && lower.tree),
      ['adapt', 'root'],
    )
  })
}

test('the same tar is imported once, however it is named', async () => {
  await using dir = await scratch()
  const path = join(dir.path, 'rootfs.tar')
  await writeFile(path, tarOf(ROOT))
  const images = dir.images()
  const [one, two] = [
    await images.import({ kind: 'tar', path }, { name: 'one' }),
    await images.import({ kind: 'tar', path }, { name: 'two' }),
  ]
  assert.deepEqual(one, two)
  assert.deepEqual((await images.list()).find(({ name }) => name === one.name)?.runtimes, ['one', 'two'])
})

test('a directory becomes an image; changed, it becomes another', async () => {
  await using dir = await scratch()
  const path = join(dir.path, 'tree')
  await plant(path, { 'bin/bash': '#!', 'etc/os-release': 'ID=test\n', link: '-> /etc/shadow', 'empty/': '' })
  const images = dir.images()
  const first = await images.import({ kind: 'directory', path }, { name: 'mine' })
  assert.equal((await images.import({ kind: 'directory', path }, { name: 'mine' })).name, first.name)
  const root = join(dir.path, 'images', first.name, 'root')
  assert.deepEqual((await readdir(root)).sort(), ['bin', 'empty', 'etc', 'link'])
  assert.ok((await lstat(join(root, 'link'))).isSymbolicLink())
  await writeFile(join(path, 'etc/os-release'), 'ID=changed\n')
  const second = await images.import({ kind: 'directory', path }, { name: 'mine' })
  assert.notEqual(second.name, first.name)
  assert.equal((await images.resolve('mine')).name, second.name)
  assert.deepEqual((await images.collect()).removed, [first.name])
})

const HOSTILE = {
  'climbs by ..': [{ name: '../escaped', content: 'x' }],
  'climbs from inside': [{ name: 'a/../../escaped', content: 'x' }],
  'names an absolute path': [{ name: 'TARGET/escaped', content: 'x' }],
  'writes through a link to outside': [
    { name: 'out', type: '2', target: 'TARGET' },
    { name: 'out/escaped', content: 'x' },
  ],
  'writes through a relative link': [
    { name: 'out', type: '2', target: '../../../../../..' },
    { name: 'out/TARGET/escaped', content: 'x' },
  ],
  'writes through a chain of links': [
    { name: 'a', type: '2', target: '.' },
    { name: 'a/b', type: '2', target: '..' },
    { name: 'a/b/../escaped', content: 'x' },
  ],
  'links hard to a file outside': [
    { name: 'stolen', type: '1', target: 'TARGET/precious' },
    { name: 'stolen', content: 'x' },
  ],
  'links hard through a link': [
    { name: 'out', type: '2', target: 'TARGET' },
    { name: 'stolen', type: '1', target: 'out/precious' },
  ],
  'replaces its own root by a link': [
    { name: './', type: '2', target: 'TARGET' },
    { name: './escaped', content: 'x' },
  ],
  'makes account files that lead outside': [
    { name: 'etc/', type: '5' },
    { name: 'etc/passwd', type: '2', target: 'TARGET/precious' },
    { name: 'etc/sudoers.d', type: '2', target: 'TARGET' },
    { name: 'home', type: '2', target: 'TARGET' },
    { name: 'workspace', type: '2', target: 'TARGET' },
  ],
  'makes /etc a link to outside': [
    { name: 'etc', type: '2', target: 'TARGET' },
    { name: 'home', type: '2', target: '../../../../../../TARGET' },
  ],
} as const

for (const [what, entries] of Object.entries(HOSTILE)) {
  test(`a tar that ${what} touches nothing outside of its image`, async () => {
    await using dir = await scratch()
    const target = join(dir.path, 'target')
    await plant(target, { precious: 'mine' })
    const path = join(dir.path, 'evil.tar')
    const real = entries.map((entry) => JSON.parse(JSON.stringify(entry).replaceAll('TARGET', target)))
    await writeFile(path, tarOf(real))
    const images = dir.images()
    const image = await images.import({ kind: 'tar', path }, { name: 'evil' }).catch((error) => {
      assert.equal(error.code, 'bad_request')
      return undefined as Image | undefined
    })
    assert.deepEqual(await readdir(target), ['precious'])
    assert.equal(await readFile(join(target, 'precious'), 'utf8'), 'mine')
    assert.equal((await lstat(join(target, 'precious'))).nlink, 1)
    assert.deepEqual((await readdir(dir.path)).sort(), ['evil.tar', 'images', 'target'])
    const inside = (await readdir(join(dir.path, 'images'))).filter((name) => name !== 'runtimes.json')
    assert.deepEqual(inside, image ? [image.name] : [])
    // adapt read files inside the image, not the targets of its symlinks.
    if (image)
      assert.doesNotMatch(
        execFileSync('grep', ['-r', '', join(dir.path, 'images', image.name, 'adapt')]).toString(),
        /mine/,
      )
  })
}

test('device files and overlay marks of a tar do not get into the image', async () => {
  await using dir = await scratch()
  const path = join(dir.path, 'rootfs.tar')
  const xattrs = { 'trusted.overlay.opaque': 'y', 'trusted.overlay.redirect': '/etc', 'user.kept': 'yes' }
  await writeFile(
    path,
    tarOf([
      { name: 'dev/sda', type: '3', mode: 0o666 },
      { name: 'dir/', type: '5', xattrs },
      { name: 'dir/file', content: 'x' },
    ]),
  )
  const image = await dir.images().import({ kind: 'tar', path }, { name: 'mine' })
  const root = join(dir.path, 'images', image.name, 'root')
  assert.deepEqual(await readdir(join(root, 'dev')), [])
  assert.equal(overlayMarks(root), '')
})

test('a bad import says so and leaves nothing', async () => {
  await using dir = await scratch()
  const images = dir.images()
  const path = join(dir.path, 'broken.tar.gz')
  await writeFile(path, execFileSync('gzip', ['-c'], { input: tarOf(ROOT) }).subarray(0, 100))
  await assert.rejects(images.import({ kind: 'tar', path }, { name: 'x' }), { code: 'bad_request' })
  await assert.rejects(images.import({ kind: 'tar', path: join(dir.path, 'none') }, { name: 'x' }), {
    code: 'file_not_found',
  })
  await assert.rejects(images.import({ kind: 'tar', path: 'relative' }, { name: 'x' }), {
    code: 'bad_request',
  })
  await mkdir(join(dir.path, 'tree'))
  await assert.rejects(images.import({ kind: 'tar', path: join(dir.path, 'tree') }, { name: 'x' }), {
    code: 'file_not_found',
  })
  for (const name of ['host', 'img-0123456789abcdef', '', '../x', 'a b', '-x']) {
    await assert.rejects(images.import({ kind: 'tar', path }, { name }), { code: 'bad_request' })
  }
  assert.deepEqual(await readdir(join(dir.path, 'images')), [])
})

test('a cancelled import stops and leaves nothing', async () => {
  await using dir = await scratch()
  const path = join(dir.path, 'tree')
  await plant(
    path,
    Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`file-${i}`, 'x'.repeat(100_000)])),
  )
  const cancel = new AbortController()
  const images = dir.images()
  const onProgress = () => cancel.abort()
  await assert.rejects(
    images.import({ kind: 'directory', path }, { name: 'x', signal: cancel.signal, onProgress }),
    { name: 'AbortError' },
  )
  assert.deepEqual(await readdir(join(dir.path, 'images')), [])
})
