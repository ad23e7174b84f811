import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Guest, type GuestError, isRoot, sleep, until } from './harness.ts'
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

/** Stops the guest and fills the kernel's queue; after SIGCONT the guest sees it. */
async function overflow(dir: string): Promise<void> {
  const limit = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'))
  process.kill(guest.pid, 'SIGSTOP')
  await until('the guest is stopped', () =>
    /^State:\s+T/m.test(readFileSync(`/proc/${guest.pid}/status`, 'utf8')),
  )
  writeFileSync(join(dir, 'a'), '')
  for (let i = 0; i <= limit / 4 + 100; i++) {
    renameSync(join(dir, 'a'), join(dir, 'b'))
    renameSync(join(dir, 'b'), join(dir, 'a'))
  }
}

function inotifyWatches(pid: number): number {
  const infos = readdirSync(`/proc/${pid}/fdinfo`).map((fd) =>
    readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'),
  )
  return infos.join('').match(/^inotify wd:/gm)?.length ?? 0
}

describe('watch', () => {
  test('reports what is created, changed and removed', async () => {
    const dir = fresh('basic')
    mkdirSync(join(dir, 'sub'))
    const watch = await Watch.open(guest, dir)
    writeFileSync(join(dir, 'file'), '')
    await watch.until('created file')
    appendFileSync(join(dir, 'file'), 'more')
    await watch.until('changed file')
    chmodSync(join(dir, 'file'), 0o600)
    await watch.until('changed file')
    writeFileSync(join(dir, 'sub', 'deep'), 'x')
    await watch.until('created sub/deep')
    unlinkSync(join(dir, 'file'))
    await watch.until('removed file')
    symlinkSync('/', join(dir, 'link'))
    await watch.until('created link')
    rmSync(join(dir, 'sub'), { recursive: true })
    assert.ok((await watch.until('removed sub/')).includes('removed sub/deep'))
    watch.close()
  })

  test('reports a rename as removed and created, and follows the directory', async () => {
    const dir = fresh('rename')
    mkdirSync(join(dir, 'a', 'b'), { recursive: true })
    writeFileSync(join(dir, 'a', 'b', 'file'), '')
    const watch = await Watch.open(guest, dir)
    renameSync(join(dir, 'a'), join(dir, 'z'))
    const events = await watch.until('created z/b/file')
    assert.ok(
      events.includes('removed a/') && events.includes('created z/') && events.includes('created z/b/'),
    )
    writeFileSync(join(dir, 'z', 'b', 'later'), '')
    await watch.until('created z/b/later')
    renameSync(join(dir, 'z', 'b', 'later'), join(dir, 'z', 'latest'))
    const moved = await watch.until('created z/latest')
    assert.ok(moved.includes('removed z/b/later'))
    // Out of the tree, where nothing is reported any more, and back.
    const outside = fresh('rename-outside')
    renameSync(join(dir, 'z'), join(outside, 'z'))
    await watch.until('removed z/')
    writeFileSync(join(outside, 'z', 'unseen'), '')
    mkdirSync(join(dir, 'mark'))
    const quiet = await watch.until('created mark/')
    assert.ok(!quiet.some((event) => event.includes('unseen')))
    renameSync(join(outside, 'z'), join(dir, 'back'))
    assert.ok((await watch.until('created back/unseen')).includes('created back/'))
    watch.close()
  })

  test('a directory made and filled at once yields every event', async () => {
    const dir = fresh('filled')
    const watch = await Watch.open(guest, dir)
    const expected = new Set<string>()
    for (let i = 0; i < 20; i++) {
      mkdirSync(join(dir, `d${i}`, 'x', 'y'), { recursive: true })
      for (const path of [`d${i}/`, `d${i}/x/`, `d${i}/x/y/`]) expected.add(`created ${path}`)
      for (let j = 0; j < 10; j++) {
        writeFileSync(join(dir, `d${i}`, 'x', 'y', `f${j}`), 'x')
        expected.add(`created d${i}/x/y/f${j}`)
      }
    }
    const seen = new Set<string>()
    while (!expected.isSubsetOf(seen))
      for (const event of await watch.until([...expected].find((event) => !seen.has(event))!)) seen.add(event)
    watch.close()
  })

  test('many changes of one file are few events', async () => {
    const dir = fresh('busy')
    const watch = await Watch.open(guest, dir)
    for (let i = 0; i < 2000; i++) appendFileSync(join(dir, 'log'), 'line\n')
    writeFileSync(join(dir, 'end'), '')
    const events = await watch.until('created end')
    assert.ok(events.length < 500, `${events.length} events`)
    watch.close()
  })

  test('without recursion only the directory itself is watched', async () => {
    const dir = fresh('flat')
    mkdirSync(join(dir, 'sub'))
    const watch = await Watch.open(guest, dir, {})
    writeFileSync(join(dir, 'sub', 'unseen'), '')
    mkdirSync(join(dir, 'new'))
    writeFileSync(join(dir, 'new', 'unseen'), '')
    writeFileSync(join(dir, 'end'), '')
    const events = await watch.until('created end')
    assert.ok(!events.some((event) => event.includes('unseen')), events.join())
    watch.close()
  })

  test('names to ignore are neither reported nor watched', async () => {
    const dir = fresh('ignore')
    mkdirSync(join(dir, 'node_modules', 'deep'), { recursive: true })
    const ignore = ['node_modules', '*.log', '.git*', 'a*b*c', '\\*']
    const watch = await Watch.open(guest, dir, { recursive: 1, ignore })
    const watches = () => inotifyWatches(guest.pid)
    const before = watches()
    for (const path of ['node_modules/x', 'node_modules/deep/y', 'debug.log', '.log', 'axbxc', 'abc', '*'])
      writeFileSync(join(dir, path), '')
    mkdirSync(join(dir, '.gitdir', 'sub'), { recursive: true })
    writeFileSync(join(dir, '.gitdir', 'sub', 'z'), '')
    for (const path of ['log', 'abcd', 'x.log2', 'node_modules2']) writeFileSync(join(dir, path), '')
    mkdirSync(join(dir, 'made', 'node_modules'), { recursive: true })
    writeFileSync(join(dir, 'made', 'node_modules', 'z'), '')
    writeFileSync(join(dir, 'made', 'end'), '')
    const events = new Set(await watch.until('created made/end'))
    const expected = ['log', 'abcd', 'x.log2', 'node_modules2', 'made/', 'made/end']
    assert.deepEqual(events, new Set(expected.map((path) => `created ${path}`)))
    assert.equal(watches(), before + 1, 'only the one new directory is watched')
    // A rename into an ignored name is only removed, one out of it only created.
    renameSync(join(dir, 'made'), join(dir, '.gitmade'))
    await watch.until('removed made/')
    renameSync(join(dir, 'node_modules'), join(dir, 'shown'))
    assert.ok((await watch.until('created shown/deep/y')).every((event) => !event.includes('.gitmade')))
    watch.close()
  })

  test('ignored names still are after an overflow of the kernel', async () => {
    const dir = fresh('ignore-overflow')
    const watch = await Watch.open(guest, dir, { recursive: 1, ignore: ['skipped'] })
    await overflow(dir)
    mkdirSync(join(dir, 'skipped'))
    process.kill(guest.pid, 'SIGCONT')
    await watch.until('overflow ./')
    writeFileSync(join(dir, 'skipped', 'file'), '')
    writeFileSync(join(dir, 'end'), '')
    assert.ok(!(await watch.until('created end')).some((event) => event.includes('skipped')))
    watch.close()
  })

  test('a list of names that is malformed is refused', async () => {
    const path = fresh('ignore-bad')
    const many = Array.from({ length: 1025 }, (_, i) => `n${i}`)
    for (const ignore of [['a/b'], [''], ['x'.repeat(1025)], many]) {
      const stream = guest.request('WATCH', { path, recursive: 1, ignore })
      await assert.rejects(stream.next('OPENED'), (error: GuestError) => error.kind === 'BAD_REQUEST')
    }
    const watch = await Watch.open(guest, path, { recursive: 1, ignore: many.slice(0, 1024) })
    watch.close()
  })

  test('names and stars made to be slow are not', async () => {
    const dir = fresh('ignore-slow')
    const watch = await Watch.open(guest, dir, { recursive: 1, ignore: [`${'*a'.repeat(120)}b`] })
    const name = 'a'.repeat(255)
    writeFileSync(join(dir, name), '')
    await watch.until(`created ${name}`)
    watch.close()
  })

  test('a single file may be watched', async () => {
    const file = guest.path('single')
    writeFileSync(file, '')
    const watch = await Watch.open(guest, file)
    appendFileSync(file, 'x')
    await watch.until('changed .')
    unlinkSync(file)
    await assert.rejects(watch.until('never'), (error: GuestError) => error.kind === 'NOT_FOUND')
  })

  test('a watched file that is replaced is gone, also while it is open', async () => {
    for (const isOpen of [false, true]) {
      const file = guest.path(`replaced-${isOpen}`)
      writeFileSync(file, 'old')
      const watch = await Watch.open(guest, file)
      const fd = isOpen ? openSync(file, 'r') : undefined
      writeFileSync(`${file}.new`, 'new')
      renameSync(`${file}.new`, file)
      await assert.rejects(watch.until('never'), (error: GuestError) => error.kind === 'NOT_FOUND')
      if (fd !== undefined) closeSync(fd)
    }
  })

  test('the stream ends when the watched path goes away or was never there', async () => {
    const gone = (error: GuestError) => error.kind === 'NOT_FOUND'
    await assert.rejects(Watch.open(guest, guest.path('missing')), gone)
    const dir = fresh('doomed')
    writeFileSync(join(dir, 'file'), '')
    const watch = await Watch.open(guest, dir)
    rmSync(dir, { recursive: true })
    await watch.until('removed file')
    await assert.rejects(watch.until('never'), gone)
    const moved = await Watch.open(guest, fresh('moved'))
    renameSync(guest.path('moved'), guest.path('moved-away'))
    await assert.rejects(moved.until('never'), gone)
  })

  test('an overflow of the kernel is reported, and new directories are watched afterwards', async () => {
    const dir = fresh('overflow')
    const watch = await Watch.open(guest, dir)
    await overflow(dir)
    mkdirSync(join(dir, 'unnoticed'))
    process.kill(guest.pid, 'SIGCONT')
    await watch.until('overflow ./')
    writeFileSync(join(dir, 'unnoticed', 'file'), '')
    await watch.until('created unnoticed/file')
    renameSync(join(dir, 'unnoticed', 'file'), join(dir, 'a'))
    await watch.until('changed a')
    watch.close()
  })

  test('a client that is too slow gets one overflow instead of everything', async () => {
    const dir = fresh('slow')
    writeFileSync(guest.path('filler'), Buffer.alloc(4 << 20))
    const watch = await Watch.open(guest, dir)
    const filler = guest.request('READ', { path: guest.path('filler') })
    filler.send('WINDOW', { limit: 4 << 20 })
    await filler.next('OPENED')
    guest.socket!.pause()
    const name = (i: number) => `${'n'.repeat(240)}${i}`
    for (let i = 0; i < 10_000; i++) {
      writeFileSync(join(dir, name(i)), '')
      if (i % 1000 === 0) await sleep(1)
    }
    await sleep(100)
    guest.socket!.resume()
    await watch.until('overflow ./')
    writeFileSync(join(dir, 'after'), '')
    await watch.until('created after')
    watch.close()
    rmSync(dir, { recursive: true })
  })

  test('fifty thousand directories are watched', async (t) => {
    const limit = Number(readFileSync('/proc/sys/fs/inotify/max_user_watches', 'utf8'))
    const root = mkdtempSync('/dev/shm/guest-test-')
    t.after(() => rmSync(root, { recursive: true }))
    for (let i = 0; i < 100; i++) {
      mkdirSync(join(root, `d${i}`))
      for (let j = 0; j < 499; j++) mkdirSync(join(root, `d${i}`, `e${j}`))
    }
    if (limit < 51_000) {
      await assert.rejects(
        Watch.open(guest, root),
        (error: GuestError) => error.kind === 'LIMIT' && /max_user_watches/.test(error.message),
      )
      return
    }
    const watch = await Watch.open(guest, root)
    assert.equal(await guest.ping(), 'ping')
    writeFileSync(join(root, 'd99', 'e498', 'file'), '')
    await watch.until('created d99/e498/file')
    renameSync(join(root, 'd0'), join(root, 'renamed'))
    writeFileSync(join(root, 'renamed', 'e7', 'file'), '')
    await watch.until('created renamed/e7/file')
    watch.close()
    await guest.ping()
  })

  test('too many directories are a LIMIT that names the setting', {
    skip: isRoot ? false : 'needs root',
  }, async (t) => {
    const small = await Guest.start([
      'unshare',
      '--user',
      '--map-root-user',
      'sh',
      '-c',
      'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"',
      'sh',
    ])
    t.after(() => small.stop())
    for (let i = 0; i < 5; i++) mkdirSync(small.path(`d${i}`))
    const stream = small.request('WATCH', { path: small.dir, recursive: 1 })
    await assert.rejects(
      stream.next('OPENED'),
      (error: GuestError) => error.kind === 'LIMIT' && /max_user_watches/.test(error.message),
    )
  })
})
