import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { childrenOf, download, Guest, type GuestError, isRoot, until, upload } from './harness.ts'

let guest: Guest
before(async () => {
  guest = await Guest.start()
})
after(() => guest.stop())

const pack = (path: string) => download(guest.request('TAR_OUT', { path }))
const unpack = (path: string, archive: Buffer, fields = {}) =>
  upload(guest.request('TAR_IN', { path, ...fields }), archive)

/** Everything that must survive, by path. */
function picture(dir: string, below = ''): Record<string, unknown> {
  const entries: Record<string, unknown> = {}
  const inodes = new Map<number, string>()
  for (const name of readdirSync(join(dir, below)).sort()) {
    const path = join(below, name)
    const st = lstatSync(join(dir, path))
    const common = [st.mode, st.uid, st.gid, Math.floor(st.mtimeMs / 1000)]
    if (st.isDirectory()) Object.assign(entries, { [path]: common }, picture(dir, path))
    else if (st.isSymbolicLink()) entries[path] = [...common, readlinkSync(join(dir, path))]
    else if (st.isFile()) {
      const first = inodes.get(st.ino) ?? path
      inodes.set(st.ino, first)
      entries[path] = [
        ...common,
        st.size,
        readFileSync(join(dir, path), 'base64').slice(0, 100),
        st.nlink,
        first,
      ]
    } else entries[path] = common
  }
  return entries
}

function makeTree(root: string) {
  const at = (...names: string[]) => join(root, ...names)
  const long = 'component-of-forty-characters-in-length-'
  mkdirSync(at('empty'), { recursive: true })
  mkdirSync(at('dir', 'nested'), { recursive: true })
  writeFileSync(at('dir', 'file'), 'content')
  writeFileSync(at('dir', 'nothing'), '')
  writeFileSync(at('dir', 'block'), Buffer.alloc(512, 1))
  writeFileSync(at('dir', 'large'), Buffer.alloc(700_001, 'large'))
  linkSync(at('dir', 'file'), at('dir', 'nested-twin'))
  symlinkSync('../dir/file', at('dir', 'nested', 'link'))
  symlinkSync('x'.repeat(150), at('long-target'))
  symlinkSync('/absolute/path', at('absolute'))
  writeFileSync(at(`name-${'x'.repeat(120)}`), 'over a hundred')
  const deep = Array.from({ length: 8 }, (_, i) => long + i)
  mkdirSync(at(...deep), { recursive: true })
  writeFileSync(at(...deep, `name-${'y'.repeat(200)}`), 'over 255')
  linkSync(at(...deep, `name-${'y'.repeat(200)}`), at(...deep, 'twin'))
  writeFileSync(at('ünïcödé-日本語-🏝'), 'unicode')
  mkdirSync(at(`日本${'語'.repeat(60)}`))
  execFileSync('mkfifo', [at('fifo')])
  chmodSync(at('dir', 'file'), 0o4755)
  chmodSync(at('dir', 'nothing'), 0o000)
  if (isRoot) {
    chownSync(at('dir', 'block'), 1234, 5678)
    chownSync(at('dir', 'large'), 3_000_000, 4_000_000)
  }
  chmodSync(at('empty'), 0o1777)
  utimesSync(at('dir', 'file'), 1_000_000, 1_000_000_000)
  utimesSync(at('dir'), 1_000_000, 1_100_000_000)
  chmodSync(at('dir', 'nested'), 0o555)
}

describe('tar', () => {
  test('goes out and in again with everything kept', async () => {
    const from = guest.path('tree')
    makeTree(from)
    const archive = await pack(from)
    assert.equal(archive.length % 512, 0)
    const { count } = await unpack(guest.path('again', 'made'), archive)
    const before = picture(from)
    assert.equal(count, Object.keys(before).length)
    assert.deepEqual(picture(guest.path('again', 'made')), before)
  })

  test('what the guest packs, tar unpacks', async () => {
    mkdirSync(guest.path('by-tar'))
    execFileSync('tar', ['-xp', '--same-owner', '-C', guest.path('by-tar')], {
      input: await pack(guest.path('tree')),
    })
    assert.deepEqual(picture(guest.path('by-tar')), picture(guest.path('tree')))
  })

  for (const format of ['gnu', 'pax', 'ustar', 'v7']) {
    test(`what tar packs as ${format}, the guest unpacks`, async () => {
      // The older formats cannot hold long names and large ids.
      const from =
        format === 'gnu' || format === 'pax' ? guest.path('tree') : guest.path('tree', 'empty', '..', 'plain')
      if (!existsSync(from)) {
        mkdirSync(join(from, 'sub'), { recursive: true })
        writeFileSync(join(from, 'sub', 'file'), 'plain')
        symlinkSync('sub/file', join(from, 'link'))
      }
      const archive = execFileSync('tar', ['-c', `--format=${format}`, '-C', from, '.'], {
        maxBuffer: 1 << 26,
      })
      await unpack(guest.path(`from-${format}`), archive)
      assert.deepEqual(picture(guest.path(`from-${format}`)), picture(from))
    })
  }

  test('a single file becomes an archive of one', async () => {
    const archive = await pack(guest.path('tree', 'dir', 'file'))
    assert.equal(execFileSync('tar', ['-t'], { input: archive }).toString(), 'file\n')
    await assert.rejects(pack('/dev/null'), (error: GuestError) => error.kind === 'UNSUPPORTED')
    await assert.rejects(pack(guest.path('missing')), (error: GuestError) => error.kind === 'NOT_FOUND')
  })

  test('an owner may be given for all', async () => {
    if (!isRoot) return
    const archive = await pack(guest.path('tree', 'dir'))
    await unpack(guest.path('owned', 'sub'), archive, { owner: '55:66' })
    for (const path of ['', 'sub', 'sub/file', 'sub/nested', 'sub/nested/link'].map((name) =>
      guest.path('owned', name),
    )) {
      assert.deepEqual([lstatSync(path).uid, lstatSync(path).gid], [55, 66], path)
    }
  })

  test('unpacking replaces files and symlinks and merges directories', async () => {
    const target = guest.path('over')
    const source = guest.path('over-source')
    mkdirSync(join(source, 'd'), { recursive: true })
    writeFileSync(join(source, 'd', 'f'), 'new')
    mkdirSync(join(target, 'd'), { recursive: true })
    writeFileSync(join(target, 'd', 'keep'), 'kept')
    writeFileSync(guest.path('outside'), 'untouched')
    symlinkSync(guest.path('outside'), join(target, 'd', 'f'))
    await unpack(target, await pack(source))
    assert.equal(readFileSync(join(target, 'd', 'f'), 'utf8'), 'new')
    assert.equal(readFileSync(join(target, 'd', 'keep'), 'utf8'), 'kept')
    assert.equal(readFileSync(guest.path('outside'), 'utf8'), 'untouched')
  })

  test('a reset ends the worker', async () => {
    const stream = guest.request('TAR_IN', { path: guest.path('reset') })
    await stream.next('OPENED')
    stream.raw('DATA', entry({ name: 'big', size: 100_000 }).subarray(0, 600))
    stream.send('RESET')
    await until('the worker is gone', () => childrenOf(guest.pid).length === 0)
    const out = guest.request('TAR_OUT', { path: guest.path('tree') })
    await out.next('OPENED')
    out.send('RESET')
    await until('the worker is gone', () => childrenOf(guest.pid).length === 0)
  })

  test('a lost connection ends the workers too', async () => {
    const stream = guest.request('TAR_IN', { path: guest.path('lost') })
    await stream.next('OPENED')
    await guest.reconnect()
    await until('the worker is gone', () => childrenOf(guest.pid).length === 0)
  })
})

interface Header {
  name: string
  type?: string
  link?: string
  size?: number
  content?: string
}

/** One handmade entry of an archive, which may contain anything. */
function entry({ name, type = '0', link = '', content = '', size = content.length }: Header): Buffer {
  const header = Buffer.alloc(512)
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at)
  header.write(name, 0)
  octal(0o644, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(1000, 136, 12)
  header.write(type, 156)
  header.write(link, 157)
  header.write('ustar\x0000', 257)
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512)
  body.write(content)
  return Buffer.concat([header, body])
}

const END = Buffer.alloc(1024)

describe('an archive that wants out', () => {
  /** "@" is the test's own directory, by its absolute path. */
  const at = ({ name, link, ...rest }: Header): Header => ({
    name: name.replace('@', guest.dir),
    link: link?.replace('@', guest.dir),
    ...rest,
  })
  const attacks: [string, Header[]][] = [
    ['by an absolute name', [{ name: '@/escaped', content: 'x' }]],
    ['upwards', [{ name: '../escaped', content: 'x' }]],
    ['upwards from below', [{ name: 'a/b/../../../escaped', content: 'x' }]],
    [
      'through a symlink it made',
      [
        { name: 'link', type: '2', link: '..' },
        { name: 'link/escaped', content: 'x' },
      ],
    ],
    [
      'through an absolute symlink',
      [
        { name: 'link', type: '2', link: '@' },
        { name: 'link/escaped', content: 'x' },
      ],
    ],
    ['through a symlink that was there', [{ name: 'door/escaped', content: 'x' }]],
    ['with a directory below a symlink', [{ name: 'door/made', type: '5' }]],
    ['with a hard link upwards', [{ name: 'hard', type: '1', link: '../secret' }]],
    ['with an absolute hard link', [{ name: 'hard', type: '1', link: '/etc/passwd' }]],
    ['with a hard link through a symlink', [{ name: 'hard', type: '1', link: 'door/secret' }]],
    [
      'with a name in a pax header',
      [
        { name: 'pax', type: 'x', content: '20 path=../escaped\n' },
        { name: 'ok', content: 'x' },
      ],
    ],
    [
      'with a long name',
      [
        { name: 'L', type: 'L', content: '../escaped\0' },
        { name: 'ok', content: 'x' },
      ],
    ],
  ]
  for (const [how, headers] of attacks) {
    test(`${how} is refused`, async () => {
      const outer = guest.path('outer')
      execFileSync('rm', ['-rf', outer])
      mkdirSync(join(outer, 'in'), { recursive: true })
      writeFileSync(join(outer, 'secret'), 'secret')
      symlinkSync('..', join(outer, 'in', 'door'))
      const archive = Buffer.concat([...headers.map((header) => entry(at(header))), END])
      await assert.rejects(
        unpack(join(outer, 'in'), archive),
        (error: GuestError) => error.kind === 'BAD_REQUEST',
      )
      assert.deepEqual(readdirSync(outer).sort(), ['in', 'secret'])
      assert.equal(existsSync(guest.path('escaped')), false)
      assert.equal(existsSync(join(outer, 'in', 'hard')), false)
      assert.equal(lstatSync(join(outer, 'secret')).nlink, 1)
    })
  }

  test('or is none is refused', async () => {
    const refused = (error: GuestError) => error.kind === 'BAD_REQUEST' && error.stage === 'archive'
    await assert.rejects(unpack(guest.path('none'), Buffer.alloc(2048, 'gzip?')), refused)
    await assert.rejects(unpack(guest.path('none'), Buffer.from('short')), refused)
    const cut = entry({ name: 'cut', content: 'x'.repeat(2000) }).subarray(0, 1024)
    await assert.rejects(unpack(guest.path('none'), cut), refused)
    assert.equal(existsSync(guest.path('none', 'cut')), false)
    const pax = entry({ name: 'pax', type: 'x', content: '999 path=x\n' })
    await assert.rejects(unpack(guest.path('none'), Buffer.concat([pax, END])), refused)
    assert.equal((await unpack(guest.path('none'), END)).count, 0)
    assert.equal((await unpack(guest.path('none'), Buffer.alloc(0))).count, 0)
  })
})
