// Renames over files, and temporary files of writes.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Fields, Guest, type Stream } from './harness.ts'
import { Watch } from './watch.ts'

let guest: Guest
before(async () => {
  guest = await Guest.start()
})
after(() => guest.stop())

function fresh(name: string): string {
  const dir = guest.path(name)
  mkdirSync(dir)
  return dir
}

test('a rename over a file is a change of it, wherever it comes from', async () => {
  const dir = fresh('over')
  const outside = fresh('over-outside')
  mkdirSync(join(dir, 'sub'))
  for (const name of ['kept', 'sub/deep']) writeFileSync(join(dir, name), 'old')
  for (const name of ['x', 'y']) writeFileSync(join(outside, name), 'new')
  const watch = await Watch.open(guest, dir, { recursive: 1, ignore: ['*.tmp'] })
  writeFileSync(join(dir, 'other'), '')
  await watch.until('created other')
  renameSync(join(dir, 'other'), join(dir, 'kept'))
  assert.deepEqual(await watch.until('changed kept'), ['removed other', 'changed kept'])
  renameSync(join(outside, 'x'), join(dir, 'sub', 'deep'))
  assert.deepEqual(await watch.until('changed sub/deep'), ['changed sub/deep'])
  writeFileSync(join(dir, 'saved.tmp'), '')
  renameSync(join(dir, 'saved.tmp'), join(dir, 'kept'))
  assert.deepEqual(await watch.until('changed kept'), ['changed kept'])
  // It was moved away, so the next file at its path is new.
  renameSync(join(dir, 'kept'), join(outside, 'kept'))
  renameSync(join(outside, 'y'), join(dir, 'kept'))
  assert.deepEqual(await watch.until('created kept'), ['removed kept', 'created kept'])
  // Only an empty directory can be renamed over: the result is reported as created, with its content.
  mkdirSync(join(outside, 'full'))
  writeFileSync(join(outside, 'full', 'file'), '')
  mkdirSync(join(dir, 'empty'))
  await watch.until('created empty/')
  renameSync(join(outside, 'full'), join(dir, 'empty'))
  assert.ok((await watch.until('created empty/file')).includes('created empty/'))
  writeFileSync(join(outside, 'z'), '')
  renameSync(join(outside, 'z'), join(dir, 'empty', 'file'))
  await watch.until('changed empty/file')
  watch.close()
})

test('the names of a large directory are known as they come and go', async () => {
  const dir = fresh('names')
  const outside = fresh('names-outside')
  const names = Array.from({ length: 600 }, (_, index) => `n${index}`)
  for (const name of names) writeFileSync(join(dir, name), '')
  const watch = await Watch.open(guest, dir)
  const isGone = (_: string, index: number) => index % 3 === 0
  for (const name of names.filter(isGone)) unlinkSync(join(dir, name))
  await watch.until(`removed ${names.filter(isGone).at(-1)}`)
  for (const name of names) {
    writeFileSync(join(outside, name), '')
    renameSync(join(outside, name), join(dir, name))
  }
  writeFileSync(join(dir, 'end'), '')
  assert.deepEqual(await watch.until('created end'), [
    ...names.map((name, index) => `${isGone(name, index) ? 'created' : 'changed'} ${name}`),
    'created end',
  ])
  watch.close()
})

test('what is being written is not told: a write is one event when it is done, and none when it fails', async () => {
  const dir = fresh('written')
  writeFileSync(join(dir, 'old'), 'old')
  const watch = await Watch.open(guest, dir)
  const write = (name: string) => guest.request('WRITE', { path: join(dir, name) })
  const begin = async (name: string) => {
    const stream = write(name)
    await stream.next('OPENED')
    stream.raw('DATA', Buffer.alloc(10_000))
    await guest.ping()
    return stream
  }
  const end = async (stream: Stream) => {
    stream.send('END')
    await stream.next('OK', 'WINDOW')
  }
  const made = await begin('new')
  const changed = await begin('old')
  const cancelled = await begin('old')
  assert.equal(readdirSync(dir).length, 4, 'each is a file of its own meanwhile')
  const listing = guest.request('LIST', { path: dir })
  const { fields } = await listing.next('ENTRIES')
  assert.deepEqual(
    fields.entry.map(({ path }: Fields) => path),
    ['old'],
  )
  // A directory that comes with such a file in it, and a watch that begins beside it.
  mkdirSync(join(dir, 'sub'))
  writeFileSync(join(dir, 'sub', '.islet-0123456789abcdef'), '')
  await guest.ask('COPY', { from: dir, to: guest.path('written-copy'), recursive: 1 })
  assert.deepEqual(readdirSync(guest.path('written-copy'), { recursive: true }).sort(), ['old', 'sub'])
  const late = await Watch.open(guest, dir)
  cancelled.send('RESET')
  await end(made)
  assert.deepEqual(await watch.until('created new'), ['created sub/', 'created new'])
  await end(changed)
  await watch.until('changed old')
  for (const name of ['.islet-', '.islet-0123456789abcdeg', '.islet-0123456789abcdef0'])
    writeFileSync(join(dir, name), '')
  mkdirSync(join(dir, '.islet-0123456789abcdef'))
  const plain = ['.islet-', '.islet-0123456789abcdeg', '.islet-0123456789abcdef0', '.islet-0123456789abcdef/']
  const told = plain.map((name) => `created ${name}`)
  assert.deepEqual(await watch.until(told.at(-1)!), told)
  assert.deepEqual(await late.until(told.at(-1)!), ['created new', 'changed old', ...told])
  watch.close()
  late.close()
})
