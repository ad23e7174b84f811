import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Images } from './image.ts'
import { type Scratch, scratch, tarOf } from './scratch.ts'
import { stage } from './staging.ts'

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
