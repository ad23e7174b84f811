import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { after, before, describe, test } from 'node:test'
import {
  type Fields,
  Guest,
  INITIAL_WINDOW,
  isRoot,
  MAX_DATA,
  rssKib,
  SANITIZED,
  type Stream,
} from './harness.ts'
import { refused } from './refusal.ts'

const MIB = 1024 * 1024
const needsRoot = { skip: isRoot ? false : 'needs root' }

let guest: Guest
let dir: string
before(async () => {
  guest = await Guest.start()
  dir = guest.path('files')
  mkdirSync(dir)
})
after(() => guest.stop())

const at = (...names: string[]) => [dir, ...names].join('/')
const temps = (path = dir) => readdirSync(path).filter((name) => name.startsWith('.islet-'))

describe('stat', () => {
  test('tells what is at a path', async () => {
    writeFileSync(at('stat'), 'four')
    chmodSync(at('stat'), 0o4751)
    utimesSync(at('stat'), 1000, 1234.567)
    symlinkSync('stat', at('stat-link'))
    const [file] = (await guest.ask('STAT', { path: at('stat') })).entry
    assert.deepEqual(file, {
      path: at('stat'),
      type: 1,
      size: 4,
      mode: 0o4751,
      uid: process.getuid!(),
      gid: process.getgid!(),
      mtimeMs: 1_234_567,
    })
    const [link] = (await guest.ask('STAT', { path: at('stat-link') })).entry
    assert.deepEqual([link.type, link.target], [3, 'stat'])
    const [followed] = (await guest.ask('STAT', { path: at('stat-link'), follow: 1 })).entry
    assert.deepEqual([followed.type, followed.size, followed.path], [1, 4, at('stat-link')])
    assert.equal((await guest.ask('STAT', { path: '/dev/null' })).entry[0].type, 4)
    assert.equal((await guest.ask('STAT', { path: dir })).entry[0].type, 2)
    await assert.rejects(guest.ask('STAT', { path: at('missing') }), refused('NOT_FOUND', 'stat'))
    await assert.rejects(guest.ask('STAT', { path: at('stat', 'below') }), refused('NOT_DIRECTORY'))
  })
})

describe('read', () => {
  test('gives whole files and ranges of them', async () => {
    writeFileSync(at('range'), '0123456789')
    const read = async (fields: Fields = {}) => (await guest.readFile(at('range'), fields)).toString()
    assert.equal(await read(), '0123456789')
    assert.equal(await read({ offset: 3 }), '3456789')
    assert.equal(await read({ offset: 3, length: 4 }), '3456')
    assert.equal(await read({ length: 0 }), '')
    assert.equal(await read({ offset: 8, length: 100 }), '89')
    assert.equal(await read({ offset: 100 }), '')
    writeFileSync(at('empty'), '')
    assert.equal((await guest.readFile(at('empty'))).length, 0)
    assert.match((await guest.readFile('/proc/self/status')).toString(), /^Name:/)
  })

  test('follows symlinks and refuses what is not a file, without blocking', async () => {
    symlinkSync('range', at('range-link'))
    assert.equal((await guest.readFile(at('range-link'))).toString(), '0123456789')
    await guest.sh(`mkfifo ${at('fifo')}`)
    await assert.rejects(guest.readFile(at('fifo')), refused('UNSUPPORTED'))
    await assert.rejects(guest.readFile('/dev/zero'), refused('UNSUPPORTED'))
    await assert.rejects(guest.readFile(dir), refused('IS_DIRECTORY'))
    await assert.rejects(guest.readFile(at('missing')), refused('NOT_FOUND', 'open'))
  })

  test('on request a symlink is not followed, whatever it points at', async () => {
    const read = (name: string) => guest.request('READ', { path: at(name), nofollow: 1 })
    for (const [name, target] of Object.entries({
      'link-file': 'range',
      'link-proc': '/proc/self',
      'link-none': 'none',
    })) {
      symlinkSync(target, at(name))
      await assert.rejects(read(name).next('OPENED'), refused('UNSUPPORTED', 'open'))
    }
    assert.equal((await read('range').next('OPENED')).fields.entry.size, 10)
  })

  test('respects the window over 300 MB, and memory stays flat', async () => {
    const size = 300 * MIB
    const path = at('huge')
    const fd = openSync(path, 'w')
    truncateSync(path, size)
    for (let i = 0; i < 300; i++) writeSync(fd, `mark ${i}`, i * MIB + i * 17)
    const stream = guest.request('READ', { path })
    assert.equal((await stream.next('OPENED')).fields.entry.size, size)
    const hash = createHash('sha256')
    let received = 0
    const take = async () => {
      const { raw } = await stream.next('DATA')
      assert.ok(raw.length <= MAX_DATA)
      received += raw.length
      hash.update(raw)
    }
    while (received < INITIAL_WINDOW) await take()
    await guest.ping()
    assert.equal(received, INITIAL_WINDOW)
    assert.equal(stream.queue.length, 0)
    let limit = INITIAL_WINDOW
    while (received < size) {
      if (limit - received < 2 * MIB) {
        limit = received + 4 * MIB
        stream.send('WINDOW', { limit })
      }
      await take()
      assert.ok(received <= limit)
    }
    await stream.next('END')
    if (!SANITIZED) assert.ok(rssKib(guest.pid) < 8192, `${rssKib(guest.pid)} KiB`)
    const expected = createHash('sha256')
    for (const chunk of chunks(path)) expected.update(chunk)
    assert.equal(hash.digest('hex'), expected.digest('hex'))
    rmSync(path)
  })

  test('many reads at once share the link', async () => {
    writeFileSync(at('shared'), Buffer.alloc(3 * MIB, 'x'))
    const all = await Promise.all(Array.from({ length: 20 }, () => guest.readFile(at('shared'))))
    assert.ok(all.every((content) => content.length === 3 * MIB))
  })

  test('is cancelled by RESET', async () => {
    const stream = guest.request('READ', { path: at('shared') })
    await stream.next('OPENED')
    stream.send('RESET')
    await guest.ping()
    assert.deepEqual(
      readdirSync(`/proc/${guest.pid}/fd`).filter((fd) => link(fd) === at('shared')),
      [],
    )
  })
  const link = (fd: string) => {
    try {
      return readlinkSync(`/proc/${guest.pid}/fd/${fd}`)
    } catch {
      return ''
    }
  }
})

function* chunks(path: string) {
  const fd = openSync(path, 'r')
  const buffer = Buffer.alloc(MIB)
  const { readSync, closeSync } = process.getBuiltinModule('node:fs')
  for (let n = readSync(fd, buffer); n > 0; n = readSync(fd, buffer)) yield buffer.subarray(0, n)
  closeSync(fd)
}

describe('write', () => {
  test('makes and replaces files, keeping mode and owner', async () => {
    const { entry } = await guest.writeFile(at('new'), 'one')
    assert.deepEqual([entry[0].path, entry[0].size, entry[0].mode], [at('new'), 3, 0o644])
    chmodSync(at('new'), 0o2750)
    if (isRoot) chownSync(at('new'), 12, 34)
    const before = lstatSync(at('new'))
    const replaced = (await guest.writeFile(at('new'), 'two!')).entry[0]
    assert.equal(readFileSync(at('new'), 'utf8'), 'two!')
    assert.deepEqual(
      [replaced.mode, replaced.uid, replaced.gid],
      [before.mode & 0o7777, before.uid, before.gid],
    )
    assert.equal((await guest.writeFile(at('new'), '', { mode: 0o600 })).entry[0].mode, 0o600)
    assert.equal(statSync(at('new')).size, 0)
  })

  test('replaces at once: readers see the old content or the new, never a part', async () => {
    writeFileSync(at('atomic'), 'old')
    const stream = guest.request('WRITE', { path: at('atomic') })
    await stream.next('OPENED')
    stream.raw('DATA', Buffer.from('half'))
    await guest.ping()
    assert.equal(readFileSync(at('atomic'), 'utf8'), 'old')
    assert.equal(temps().length, 1)
    stream.send('END')
    await stream.next('OK')
    assert.equal(readFileSync(at('atomic'), 'utf8'), 'half')
    assert.deepEqual(temps(), [])
  })

  test('leaves nothing behind after RESET or a lost connection', async () => {
    for (const end of [
      async (stream: Stream) => {
        stream.send('RESET')
        await guest.ping()
      },
      () => guest.reconnect(),
    ]) {
      const stream = guest.request('WRITE', { path: at('unfinished') })
      await stream.next('OPENED')
      stream.raw('DATA', Buffer.from('half'))
      await guest.ping()
      assert.equal(temps().length, 1)
      await end(stream)
      assert.deepEqual(temps(), [])
      assert.equal(existsSync(at('unfinished')), false)
    }
  })

  test('follows a symlink to the file it names, also when that does not exist yet', async () => {
    mkdirSync(at('target'))
    writeFileSync(at('target', 'file'), 'old')
    symlinkSync('target/file', at('to-file'))
    symlinkSync(at('to-file'), at('to-link'))
    await guest.writeFile(at('to-link'), 'through')
    assert.equal(readFileSync(at('target', 'file'), 'utf8'), 'through')
    assert.ok(lstatSync(at('to-link')).isSymbolicLink() && lstatSync(at('to-file')).isSymbolicLink())
    symlinkSync('target/later', at('dangling'))
    await guest.writeFile(at('dangling'), 'made')
    assert.equal(readFileSync(at('target', 'later'), 'utf8'), 'made')
    symlinkSync('loop', at('loop'))
    await assert.rejects(guest.writeFile(at('loop'), ''), refused('BAD_REQUEST'))
  })

  test('makes parents when asked, fails on what exists when asked', async () => {
    await assert.rejects(guest.writeFile(at('p', 'q', 'r'), ''), refused('NOT_FOUND', 'open'))
    await guest.writeFile(at('p', 'q', 'r'), 'x', { parents: 1 })
    assert.equal(readFileSync(at('p', 'q', 'r'), 'utf8'), 'x')
    await assert.rejects(guest.writeFile(at('p', 'q', 'r'), 'y', { exclusive: 1 }), refused('EXISTS'))
    symlinkSync('nowhere', at('exclusive-link'))
    await assert.rejects(guest.writeFile(at('exclusive-link'), 'y', { exclusive: 1 }), refused('EXISTS'))
    const race = guest.request('WRITE', { path: at('raced'), exclusive: 1 })
    await race.next('OPENED')
    writeFileSync(at('raced'), 'first')
    race.send('END')
    await assert.rejects(race.next('OK'), refused('EXISTS', 'rename'))
    assert.equal(readFileSync(at('raced'), 'utf8'), 'first')
    assert.deepEqual(temps(), [])
  })

  test('refuses directories, devices and fifos', async () => {
    await assert.rejects(guest.writeFile(dir, ''), refused('IS_DIRECTORY'))
    await assert.rejects(guest.writeFile('/', ''), refused('IS_DIRECTORY'))
    await assert.rejects(guest.writeFile('/dev/null', ''), refused('UNSUPPORTED'))
    await assert.rejects(guest.writeFile(at('fifo'), ''), refused('UNSUPPORTED'))
    await assert.rejects(guest.writeFile(at('new', 'below'), ''), refused('NOT_DIRECTORY'))
    await assert.rejects(
      guest.writeFile(at('owned'), '', { owner: 'nobody-here' }),
      refused('NO_USER', 'user'),
    )
    assert.equal(existsSync(at('owned')), false)
  })

  test('gives new files and their directories to an owner', needsRoot, async () => {
    await guest.writeFile(at('own', 'deep', 'file'), 'x', { parents: 1, owner: '1234:5678', mode: 0o4755 })
    for (const path of [at('own'), at('own', 'deep'), at('own', 'deep', 'file')]) {
      assert.deepEqual([lstatSync(path).uid, lstatSync(path).gid], [1234, 5678], path)
    }
    assert.equal(lstatSync(at('own', 'deep', 'file')).mode & 0o7777, 0o4755)
  })

  test('accepts pieces of any size, also if they do not fill whole pages', async () => {
    for (const sizes of [
      [],
      [1],
      [4095, 1],
      [4095, 2, 4096],
      [4096, 4096],
      [1, 8192, 4095, 100, 70_000, 3],
      [200_001],
    ]) {
      const content = Buffer.from(Array.from({ length: sizes.reduce((a, b) => a + b, 0) }, (_, i) => i % 251))
      const stream = guest.request('WRITE', { path: at('pieces') })
      await stream.next('OPENED')
      let sent = 0
      for (const size of sizes) {
        stream.raw('DATA', content.subarray(sent, sent + size))
        sent += size
      }
      stream.send('END')
      assert.equal((await stream.next('OK')).fields.entry[0].size, content.length)
      assert.ok(readFileSync(at('pieces')).equals(content), sizes.join())
    }
    rmSync(at('pieces'))
  })

  test('takes 300 MB within the window', async () => {
    const block = Buffer.alloc(MAX_DATA)
    const stream = guest.request('WRITE', { path: at('large') })
    const hash = createHash('sha256')
    await stream.next('OPENED')
    let limit = INITIAL_WINDOW
    for (let sent = 0; sent < 300 * MIB; ) {
      while (sent + block.length > limit) limit = (await stream.next('WINDOW')).fields.limit
      block.writeUInt32LE(sent, 100)
      hash.update(block)
      stream.raw('DATA', Buffer.from(block))
      sent += block.length
    }
    stream.send('END')
    while ((await stream.next('OK', 'WINDOW')).name !== 'OK');
    const written = createHash('sha256')
    for (const chunk of chunks(at('large'))) written.update(chunk)
    assert.equal(written.digest('hex'), hash.digest('hex'))
    rmSync(at('large'))
  })
})
