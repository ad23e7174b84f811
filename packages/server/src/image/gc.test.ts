import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { ImageSource, Images } from './image.ts'
import { publish } from './job.ts'
import { type Scratch, scratch, tarOf } from './scratch.ts'
import { stage } from './staging.ts'

const defaults = { user: '', workdir: '/', env: {} }

test('collect removes what nothing names or uses, and keeps the rest', async () => {
  await using dir = await scratch()
  const used = new Set<string>()
  const images = dir.images({ inUse: async () => used })
  const host = await images.resolve('host')
  const old = await importOf(dir, images, 'one', 'first')
  const inUse = await importOf(dir, images, 'one', 'second')
  const now = await importOf(dir, images, 'one', 'third')
  used.add(inUse)
  const { removed, freedBytes } = await images.collect()
  assert.deepEqual(removed, [old])
  assert.ok(freedBytes > 0)
  assert.deepEqual(
    (await images.list()).map(({ name }) => name),
    [host.name, inUse, now].sort(),
  )
  assert.equal((await images.resolve(inUse)).name, inUse)
  used.clear()
  assert.deepEqual((await images.collect()).removed, [inUse])
})

test('images of packages are kept for a while, with the images below them', async () => {
  await using dir = await scratch()
  const used = new Set<string>()
  const images = dir.images({ inUse: async () => used })
  const below = await importOf(dir, images, 'one', 'first')
  const above = await packagesOver(images, below)
  await importOf(dir, images, 'one', 'second')
  const hour = 3_600_000
  assert.deepEqual((await images.collect({ unusedMs: hour })).removed, [])
  const old = new Date(Date.now() - 2 * hour)
  await utimes(join(images.directory(above), 'image.json'), old, old)
  assert.deepEqual((await images.collect({ dryRun: true, unusedMs: hour })).removed, [above, below].sort())
  {
    using claim = await images.claim(above)
    assert.equal(claim!.image.name, above)
    assert.deepEqual((await images.collect()).removed, [])
    await assert.rejects(images.remove(below), { code: 'image_in_use' })
  }
  assert.deepEqual((await images.collect({ unusedMs: hour })).removed, [], 'a claim is a use')
  used.add(above)
  assert.deepEqual((await images.collect()).removed, [])
  used.clear()
  assert.deepEqual((await images.collect()).removed.sort(), [above, below].sort())
  assert.equal(await images.claim(above), undefined)
})

test('a name of an image that others stand on can be removed; the image stays', async () => {
  await using dir = await scratch()
  const images = dir.images()
  const below = await importOf(dir, images, 'one', 'first')
  await packagesOver(images, below)
  await images.remove('one')
  assert.equal((await images.resolve(below)).name, below)
})

test('two servers that share the images make the same image once', async () => {
  await using dir = await scratch()
  const digest = 'd'.repeat(64)
  let fills = 0
  const [one, two] = [dir.images(), dir.images()].map((images) =>
    images.make('same', {}, async (job) => {
      const found = await job.find(digest)
      if (found) return found
      fills++
      await setTimeout(300)
      await mkdir(join(job.staging.image, 'root'))
      return publish(job.staging, { digest, source: { kind: 'tar', path: '/x' }, defaults, trees: () => [] })
    }),
  )
  assert.equal((await one!).name, (await two!).name)
  assert.equal(fills, 1)
})

test('remove takes a name, and the image with its last name', async () => {
  await using dir = await scratch()
  const images = dir.images()
  const name = await importOf(dir, images, 'one', 'same')
  await importOf(dir, images, 'two', 'same')
  await images.remove('one')
  await assert.rejects(images.resolve('one'), { code: 'runtime_not_found' })
  assert.equal((await images.resolve('two')).name, name)
  await images.remove('two')
  await assert.rejects(images.resolve(name), { code: 'image_not_found' })
  assert.deepEqual(await readdir(join(dir.path, 'images')), ['runtimes.json'])
  await assert.rejects(images.remove('two'), { code: 'runtime_not_found' })
  await assert.rejects(images.remove(name), { code: 'image_not_found' })
  await assert.rejects(images.remove('host'), { code: 'runtime_not_found' })
})

test('an image in use keeps its name; removing an image removes all its names', async () => {
  await using dir = await scratch()
  const used = new Set<string>()
  const images = dir.images({ inUse: async () => used })
  const name = await importOf(dir, images, 'one', 'same')
  await importOf(dir, images, 'two', 'same')
  used.add(name)
  await assert.rejects(images.remove(name), { code: 'image_in_use' })
  await images.remove('two')
  await assert.rejects(images.remove('one'), { code: 'image_in_use' })
  assert.equal((await images.resolve('one')).name, name)
  used.clear()
  await images.remove(name)
  await assert.rejects(images.resolve('one'), { code: 'runtime_not_found' })
})

test('leftovers of a dead process are swept; those of a living process are not', async () => {
  await using dir = await scratch()
  const images = dir.images()
  const imagesDir = join(dir.path, 'images')
  const name = await importOf(dir, images, 'one', 'x')
  await importOf(dir, images, 'one', 'y')
  for (const left of ['.tmp-999999999-1-aaaa', `.tmp-${process.pid}-1-bbbb`, '.tmp-nonsense']) {
    await mkdir(join(imagesDir, left, 'image/root'), { recursive: true })
    await writeFile(join(imagesDir, left, 'image/root/file'), 'x'.repeat(10_000))
  }
  {
    await using staging = await stage(imagesDir)
    await staging.claim(name)
    const { removed, freedBytes } = await images.collect()
    assert.deepEqual(removed, [])
    assert.ok(freedBytes >= 30_000)
    const temps = (await readdir(imagesDir)).filter((each) => each.startsWith('.tmp-'))
    assert.deepEqual(
      temps.map((each) => join(imagesDir, each)),
      [staging.path],
    )
  }
  assert.deepEqual((await images.collect()).removed, [name])
})

test('the catalog is read from the disk, so that two servers and a restart see the same', async () => {
  await using dir = await scratch()
  const [one, two] = [dir.images(), dir.images()]
  await one.resolve('host')
  assert.equal(
    (await two.runtimes()).some(({ name }) => name === 'mine'),
    false,
  )
  const name = await importOf(dir, one, 'mine', 'x')
  assert.equal((await two.resolve('mine')).name, name)
  assert.equal((await dir.images().runtimes()).find((each) => each.name === 'mine')?.image, name)
  await two.remove('mine')
  await assert.rejects(one.resolve('mine'), { code: 'runtime_not_found' })
})

test('a full disk is reported as such, and nothing incomplete stays', async (t) => {
  await using dir = await scratch()
  const imagesDir = join(dir.path, 'images')
  const path = join(dir.path, 'large.tar')
  await writeFile(path, tarOf([{ name: 'large', content: 'x'.repeat(8 << 20) }]))
  await mkdir(imagesDir)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', imagesDir], { stdio: 'ignore' })
  } catch {
    return t.skip('this machine does not let us mount a small disk')
  }
  try {
    const images = dir.images()
    await assert.rejects(images.import({ kind: 'tar', path }, { name: 'x' }), { code: 'server_disk_full' })
    assert.deepEqual(await readdir(imagesDir), [])
  } finally {
    execFileSync('umount', [imagesDir])
  }
})

async function importOf(dir: Scratch, images: Images, name: string, content: string): Promise<string> {
  const path = join(dir.path, `${content}.tar`)
  await writeFile(path, tarOf([{ name: 'file', content }]))
  return (await images.import({ kind: 'tar', path }, { name })).name
}

async function packagesOver(images: Images, below: string): Promise<string> {
  const source: ImageSource = { kind: 'packages', base: below, dependencies: [], packages: ['x'], pip: [] }
  const made = await images.make('packages', {}, async ({ staging }) => {
    await mkdir(join(staging.image, 'root'))
    const trees = (name: string) => [
      {
        tree: 'root',
        at: '/',
        lowers: [name, below].map((each) => ({ kind: 'image' as const, name: each, tree: 'root' })),
      },
    ]
    return publish(staging, { digest: 'e'.repeat(64), source, defaults, trees })
  })
  return made.name
}
