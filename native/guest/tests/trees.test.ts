import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { childrenOf, type Fields, Guest, INITIAL_WINDOW, isRoot, until, upload } from './harness.ts'
import { refusal, refused } from './refusal.ts'

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

async function list(path: string, fields: Fields = {}) {
  const stream = guest.request('LIST', { path, ...fields })
  const entries: Fields[] = []
  let bytes = 0
  for (;;) {
    const message = await stream.next('ENTRIES', 'OK')
    if (message.name === 'OK')
      return { entries, ...message.fields } as { entries: Fields[]; count: number; truncated: number }
    entries.push(...message.fields.entry)
    bytes += message.raw.length
    stream.send('WINDOW', { limit: bytes + INITIAL_WINDOW })
  }
}

describe('directories', () => {
  test('are made, with parents when asked', async () => {
    const [made] = (await guest.ask('MKDIR', { path: at('made'), mode: 0o1777 })).entry
    assert.deepEqual([made.type, made.mode], [2, 0o1777])
    await assert.rejects(guest.ask('MKDIR', { path: at('made') }), refused('EXISTS', 'mkdir'))
    await assert.rejects(guest.ask('MKDIR', { path: at('m', 'n') }), refused('NOT_FOUND'))
    await guest.ask('MKDIR', { path: at('m', 'n', 'o'), parents: 1, mode: 0o700 })
    assert.equal(statSync(at('m', 'n')).mode & 0o777, 0o755)
    assert.equal(statSync(at('m', 'n', 'o')).mode & 0o777, 0o700)
    await guest.ask('MKDIR', { path: at('m', 'n', 'o'), parents: 1 })
    writeFileSync(at('new'), '')
    await assert.rejects(guest.ask('MKDIR', { path: at('new'), parents: 1 }), refused('EXISTS'))
  })

  test('are listed to a depth and up to a limit', async () => {
    mkdirSync(at('tree', 'a', 'b', 'c'), { recursive: true })
    for (const name of ['1', 'a/2', 'a/b/3', 'a/b/c/4']) writeFileSync(at('tree', name), name)
    symlinkSync('..', at('tree', 'up'))
    const names = async (fields: Fields) =>
      (await list(at('tree'), fields)).entries.map(({ path }) => path).sort()
    assert.deepEqual(await names({ depth: 1 }), ['1', 'a', 'up'])
    assert.deepEqual(await names({}), ['1', 'a', 'up'])
    assert.deepEqual(await names({ depth: 2 }), ['1', 'a', 'a/2', 'a/b', 'up'])
    const all = await list(at('tree'), { depth: 99 })
    assert.deepEqual(all.entries.map(({ path }) => path).sort(), [
      '1',
      'a',
      'a/2',
      'a/b',
      'a/b/3',
      'a/b/c',
      'a/b/c/4',
      'up',
    ])
    assert.deepEqual([all.count, all.truncated], [8, 0])
    assert.equal(all.entries.find(({ path }) => path === 'up')!.target, '..')
    const some = await list(at('tree'), { depth: 99, limit: 3 })
    assert.deepEqual([some.entries.length, some.count, some.truncated], [3, 3, 1])
    const exact = await list(at('tree'), { depth: 99, limit: 8 })
    assert.deepEqual([exact.count, exact.truncated], [8, 0])
    await assert.rejects(list(at('missing')), refused('NOT_FOUND'))
    await assert.rejects(list(at('tree', '1')), refused('NOT_DIRECTORY'))
  })

  test('of many files are listed under the window, and a reset ends the worker', async () => {
    const count = 7000
    const name = (i: number) => `${'long-name-'.repeat(20)}${i}`
    mkdirSync(at('many'))
    for (let i = 0; i < count; i++) writeFileSync(at('many', name(i)), '')
    const { entries } = await list(at('many'))
    assert.equal(new Set(entries.map(({ path }) => path)).size, count)
    const stream = guest.request('LIST', { path: at('many') })
    let received = 0
    while (received < INITIAL_WINDOW - 65536) received += (await stream.next('ENTRIES')).raw.length
    await guest.ping()
    for (const message of stream.queue) received += message.raw.length
    assert.ok(received <= INITIAL_WINDOW)
    stream.send('RESET')
    await until('the worker is gone', () => childrenOf(guest.pid).length === 0)
    await guest.ask('REMOVE', { path: at('many'), recursive: 1 })
    assert.equal(existsSync(at('many')), false)
  })
})

describe('move', () => {
  test('renames, and overwrites only when asked', async () => {
    writeFileSync(at('from'), 'x')
    assert.equal((await guest.ask('MOVE', { from: at('from'), to: at('to') })).entry[0].path, at('to'))
    assert.deepEqual([existsSync(at('from')), readFileSync(at('to'), 'utf8')], [false, 'x'])
    writeFileSync(at('from'), 'y')
    await assert.rejects(guest.ask('MOVE', { from: at('from'), to: at('to') }), refused('EXISTS'))
    await guest.ask('MOVE', { from: at('from'), to: at('to'), overwrite: 1 })
    assert.equal(readFileSync(at('to'), 'utf8'), 'y')
    await assert.rejects(guest.ask('MOVE', { from: at('from'), to: at('to2') }), refused('NOT_FOUND'))
    mkdirSync(at('full', 'x'), { recursive: true })
    mkdirSync(at('mover'))
    await assert.rejects(
      guest.ask('MOVE', { from: at('mover'), to: at('full'), overwrite: 1 }),
      refused('NOT_EMPTY'),
    )
    await assert.rejects(
      guest.ask('MOVE', { from: at('full'), to: at('full', 'x', 'y') }),
      refused('BAD_REQUEST'),
    )
  })

  test('goes across filesystems', async (t) => {
    const other = mkdtempSync('/dev/shm/guest-test-')
    t.after(() => rmSync(other, { recursive: true }))
    if (statSync(other).dev === statSync(dir).dev) return t.skip('one filesystem only')
    mkdirSync(at('travel', 'sub'), { recursive: true })
    writeFileSync(at('travel', 'sub', 'file'), 'luggage', { mode: 0o640 })
    symlinkSync('sub', at('travel', 'link'))
    await guest.ask('MOVE', { from: at('travel'), to: `${other}/there` })
    assert.equal(existsSync(at('travel')), false)
    assert.equal(readFileSync(`${other}/there/sub/file`, 'utf8'), 'luggage')
    assert.equal(readlinkSync(`${other}/there/link`), 'sub')
    writeFileSync(at('blocker'), '')
    await assert.rejects(
      guest.ask('MOVE', { from: `${other}/there/sub/file`, to: at('blocker') }),
      refused('EXISTS'),
    )
    assert.ok(existsSync(`${other}/there/sub/file`))
  })
})

describe('copy', () => {
  test('copies files with mode, owner, times and holes', async () => {
    writeFileSync(at('source'), 'content', { mode: 0o600 })
    truncateSync(at('source'), 50 * MIB)
    chmodSync(at('source'), 0o4711)
    if (isRoot) {
      chownSync(at('source'), 5, 6)
      chmodSync(at('source'), 0o4711)
    }
    utimesSync(at('source'), 100, 200.5)
    const [entry] = (await guest.ask('COPY', { from: at('source'), to: at('copy') })).entry
    assert.deepEqual([entry.size, entry.mode, entry.mtimeMs], [50 * MIB, 0o4711, 200_500])
    const copy = lstatSync(at('copy'))
    assert.deepEqual([copy.uid, copy.gid], [lstatSync(at('source')).uid, lstatSync(at('source')).gid])
    assert.ok(copy.blocks * 512 < 5 * MIB, 'holes stay holes')
    assert.ok(readFileSync(at('copy')).equals(readFileSync(at('source'))))
    await assert.rejects(guest.ask('COPY', { from: at('source'), to: at('copy') }), refused('EXISTS'))
    writeFileSync(at('source'), 'shorter')
    await guest.ask('COPY', { from: at('source'), to: at('copy'), overwrite: 1 })
    assert.equal(readFileSync(at('copy'), 'utf8'), 'shorter')
    await assert.rejects(
      guest.ask('COPY', { from: at('source'), to: at('source'), overwrite: 1 }),
      refused('BAD_REQUEST'),
    )
    await assert.rejects(guest.ask('COPY', { from: at('missing'), to: at('x') }), refused('NOT_FOUND'))
    await assert.rejects(
      guest.ask('COPY', { from: at('source'), to: at('no', 'parent') }),
      refused('NOT_FOUND'),
    )
    assert.equal(readFileSync(at('source'), 'utf8'), 'shorter')
  })

  test('gives copies to an owner', { skip: !isRoot && 'only root gives files away' }, async () => {
    mkdirSync(at('given', 'sub'), { recursive: true })
    writeFileSync(at('given', 'sub', 'file'), 'x', { mode: 0o640 })
    symlinkSync('sub', at('given', 'link'))
    await guest.ask('COPY', { from: at('given'), to: at('taken'), recursive: 1, owner: '7:8' })
    for (const name of ['', 'sub', 'sub/file', 'link']) {
      const { uid, gid } = lstatSync(at('taken', name))
      assert.deepEqual([uid, gid], [7, 8], name)
    }
    assert.equal(lstatSync(at('taken', 'sub', 'file')).mode & 0o777, 0o640)
    await assert.rejects(
      guest.ask('COPY', { from: at('given'), to: at('nobodys'), recursive: 1, owner: 'no-such-user' }),
      refused('NO_USER'),
    )
  })

  test('leaves out what is to be skipped, and only that', async () => {
    for (const name of ['a', 'a/b', 'ab', 'c']) mkdirSync(at('whole', name), { recursive: true })
    for (const name of ['a/b/x', 'a/y', 'ab/x', 'c/b', 'top']) writeFileSync(at('whole', name), name)
    const skip = ['c', 'a/b', 'b', 'ab/', '/a', 'top/x']
    await guest.ask('COPY', { from: at('whole'), to: at('part'), recursive: 1, skip })
    const found = readdirSync(at('part'), { recursive: true }).sort()
    assert.deepEqual(found, ['a', 'a/y', 'ab', 'ab/x', 'top'])
    await assert.rejects(
      guest.ask('COPY', { from: at('whole'), to: at('none'), recursive: 1, skip: ['a', ''] }),
      refused('BAD_REQUEST'),
    )
  })

  test('copies trees with symlinks and hard links, only when recursive', async () => {
    mkdirSync(at('grove', 'sub', 'empty'), { recursive: true })
    writeFileSync(at('grove', 'sub', 'file'), 'leaf')
    linkSync(at('grove', 'sub', 'file'), at('grove', 'twin'))
    symlinkSync('/etc/passwd', at('grove', 'absolute'))
    symlinkSync('missing', at('grove', 'dangling'))
    chmodSync(at('grove', 'sub'), 0o750)
    utimesSync(at('grove', 'sub'), 1, 2)
    await assert.rejects(guest.ask('COPY', { from: at('grove'), to: at('grove2') }), refused('IS_DIRECTORY'))
    await guest.ask('COPY', { from: at('grove'), to: at('grove2'), recursive: 1 })
    assert.equal(lstatSync(at('grove2', 'twin')).ino, lstatSync(at('grove2', 'sub', 'file')).ino)
    assert.notEqual(lstatSync(at('grove2', 'twin')).ino, lstatSync(at('grove', 'twin')).ino)
    assert.deepEqual(
      [readlinkSync(at('grove2', 'absolute')), readlinkSync(at('grove2', 'dangling'))],
      ['/etc/passwd', 'missing'],
    )
    const sub = lstatSync(at('grove2', 'sub'))
    assert.deepEqual([sub.mode & 0o777, sub.mtimeMs], [0o750, 2000])
    assert.ok(lstatSync(at('grove2', 'sub', 'empty')).isDirectory())
    await assert.rejects(
      guest.ask('COPY', { from: at('grove'), to: at('grove', 'sub', 'self'), recursive: 1 }),
      refused('BAD_REQUEST'),
    )
    assert.equal(existsSync(at('grove', 'sub', 'self')), false)
  })
})

describe('a move or copy that fails', () => {
  test('says which of its two paths it failed at', async () => {
    mkdirSync(at('two', 'full', 'x'), { recursive: true })
    mkdirSync(at('two', 'tree', 'sub'), { recursive: true })
    writeFileSync(at('two', 'file'), 'x')
    writeFileSync(at('two', 'tree', 'sub', 'x'), 'x')
    mkdirSync(at('two', 'merged', 'sub', 'x'), { recursive: true })
    const both = ['MOVE', 'COPY'] as const
    const cases: [readonly ('MOVE' | 'COPY')[], string, string, string, string][] = [
      [both, 'none', 'to', 'NOT_FOUND', 'none'],
      [both, 'none', 'nowhere/to', 'NOT_FOUND', 'none'],
      [both, 'file', 'nowhere/at/all', 'NOT_FOUND', 'nowhere/at'],
      [both, 'file/x', 'to', 'NOT_DIRECTORY', 'file/x'],
      [both, 'file', 'tree/sub/x/to', 'NOT_DIRECTORY', 'tree/sub/x/to'],
      [both, 'file', 'full', 'IS_DIRECTORY', 'full'],
      [both, 'tree', 'file', 'NOT_DIRECTORY', 'file'],
      [['MOVE'], 'tree', 'full', 'NOT_EMPTY', 'full'],
      [['COPY'], 'tree', 'merged', 'IS_DIRECTORY', 'merged/sub/x'],
    ]
    for (const [verbs, from, to, kind, blamed] of cases) {
      for (const verb of verbs) {
        const request = { from: at('two', from), to: at('two', to), recursive: 1, overwrite: 1 }
        const { recursive: _, ...move } = request
        const error = await refusal(guest.ask(verb, verb === 'COPY' ? request : move))
        assert.deepEqual([error.kind, error.path], [kind, at('two', blamed)], `${verb} ${from} ${to}`)
      }
    }
    for (const verb of both) {
      const exists = await refusal(guest.ask(verb, { from: at('two', 'file'), to: at('two', 'full') }))
      assert.deepEqual([exists.kind, exists.path], ['EXISTS', at('two', 'full')])
      // Another filesystem, where not even root makes files.
      const denied = await refusal(guest.ask(verb, { from: at('two', 'file'), to: '/sys/nope' }))
      assert.deepEqual([denied.kind, denied.path], ['DENIED', '/sys/nope'])
    }
    const link = await refusal(guest.ask('SYMLINK', { path: at('two', 'nowhere', 'l'), target: 'x' }))
    assert.deepEqual([link.kind, link.path], ['NOT_FOUND', at('two', 'nowhere')])
    assert.equal(readFileSync(at('two', 'file'), 'utf8'), 'x')
  })
})

describe('remove', () => {
  test('removes files, empty directories, and trees when asked', async () => {
    mkdirSync(at('rm', 'deep'), { recursive: true })
    writeFileSync(at('rm', 'file'), '')
    await guest.ask('REMOVE', { path: at('rm', 'file') })
    await guest.ask('REMOVE', { path: at('rm', 'deep') })
    mkdirSync(at('rm', 'deep'))
    await assert.rejects(guest.ask('REMOVE', { path: at('rm') }), refused('NOT_EMPTY'))
    await guest.ask('REMOVE', { path: at('rm'), recursive: 1 })
    assert.equal(existsSync(at('rm')), false)
    await assert.rejects(guest.ask('REMOVE', { path: at('rm'), recursive: 1 }), refused('NOT_FOUND'))
  })

  test('never follows a symlink', async () => {
    mkdirSync(at('safe'))
    writeFileSync(at('safe', 'precious'), 'x')
    mkdirSync(at('trap'))
    symlinkSync(at('safe'), at('trap', 'link'))
    symlinkSync(at('safe'), at('door'))
    await guest.ask('REMOVE', { path: at('trap'), recursive: 1 })
    await guest.ask('REMOVE', { path: at('door'), recursive: 1 })
    assert.equal(readFileSync(at('safe', 'precious'), 'utf8'), 'x')
    assert.equal(existsSync(at('door')), false)
  })

  test('removes trees deeper than any path', async () => {
    mkdirSync(at('deep'))
    const { code } = await guest.sh(
      `cd ${at('deep')}; i=0; while [ $i -lt 150 ]; do mkdir ${'x'.repeat(60)}$i || exit 1; cd -P ${'x'.repeat(60)}$i || exit 1; i=$((i+1)); done`,
    )
    assert.equal(code, 0)
    await guest.ask('REMOVE', { path: at('deep'), recursive: 1 })
    assert.equal(existsSync(at('deep')), false)
  })
})

describe('the rest', () => {
  test('chmod, chown, symlink and realpath', async () => {
    writeFileSync(at('rest'), '')
    assert.equal((await guest.ask('CHMOD', { path: at('rest'), mode: 0o6711 })).entry[0].mode, 0o6711)
    if (isRoot) {
      const [owned] = (await guest.ask('CHOWN', { path: at('rest'), owner: '77:88' })).entry
      assert.deepEqual([owned.uid, owned.gid], [77, 88])
    }
    assert.equal(
      (await guest.ask('SYMLINK', { path: at('sym'), target: '../files/./rest' })).entry[0].target,
      '../files/./rest',
    )
    await assert.rejects(guest.ask('SYMLINK', { path: at('sym'), target: 'x' }), refused('EXISTS'))
    assert.equal((await guest.ask('REALPATH', { path: at('sym') })).path, at('rest'))
    await assert.rejects(guest.ask('REALPATH', { path: at('missing') }), refused('NOT_FOUND', 'realpath'))
    await assert.rejects(guest.ask('CHMOD', { path: at('missing'), mode: 0 }), refused('NOT_FOUND', 'chmod'))
  })

  test('setup replaces whatever is at its paths', async () => {
    writeFileSync(at('resolved'), 'of the host')
    symlinkSync(at('resolved'), at('resolv.conf'))
    await guest.ask('SETUP', {
      file: [
        { path: at('resolv.conf'), content: 'nameserver 10.0.0.1\n' },
        { path: at('etc', 'hosts'), content: Buffer.from([0, 255, 10]), mode: 0o600 },
      ],
    })
    assert.ok(lstatSync(at('resolv.conf')).isFile())
    assert.equal(readFileSync(at('resolv.conf'), 'utf8'), 'nameserver 10.0.0.1\n')
    assert.equal(readFileSync(at('resolved'), 'utf8'), 'of the host')
    assert.deepEqual([...readFileSync(at('etc', 'hosts'))], [0, 255, 10])
    assert.equal(statSync(at('etc', 'hosts')).mode & 0o777, 0o600)
    await assert.rejects(guest.ask('SETUP', { file: [{ path: dir, content: '' }] }), refused('IS_DIRECTORY'))
    await guest.ask('SETUP')
    assert.deepEqual(temps(), [])
  })
})

describe('a full disk and a file that is a mount', needsRoot, () => {
  test('are told apart from other failures', async () => {
    const mount =
      'mkdir $0/full && mount -t tmpfs -o size=256k none $0/full && touch $0/hosts $0/over && mount --bind $0/over $0/hosts'
    const outside = mkdtempSync('/tmp/guest-test-full-')
    const small = await Guest.start([
      'unshare',
      '--mount',
      '--propagation',
      'private',
      'sh',
      '-c',
      `${mount} && exec "$@"`,
      outside,
    ])
    try {
      await assert.rejects(
        upload(small.request('WRITE', { path: `${outside}/full/file` }), Buffer.alloc(MIB)),
        refused('NO_SPACE', 'write'),
      )
      assert.deepEqual((await small.sh(`ls -A ${outside}/full`)).stdout.toString(), '')
      await small.ask('SETUP', { file: [{ path: `${outside}/hosts`, content: 'rewritten' }] })
      assert.equal(readFileSync(`${outside}/over`, 'utf8'), 'rewritten')
    } finally {
      await small.stop()
      rmSync(outside, { recursive: true })
    }
  })
})
