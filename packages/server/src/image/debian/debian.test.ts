import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, mkdir, readdir, readFile, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import type { Image } from '../image.ts'
import { createImages } from '../images.ts'
import { scratch } from '../scratch.ts'
import { baseImageForTests, cacheEntry } from '../testing.ts'
import { archiveOf, keyringsOf, mirrorOf, suiteOf } from './apt.ts'

let base: Image
let root: string

before(async () => {
  const { imagesDir, image } = await baseImageForTests()
  base = image
  root = join(imagesDir, image.name, 'root')
})

test('the base has its tools, and the user may use them', () => {
  const inside = (user: string, ...argv: string[]) =>
    execFileSync('unshare', [
      '--mount',
      '--uts',
      '--net',
      'chroot',
      `--userspec=${user}`,
      root,
      'env',
      '-i',
      `PATH=${base.defaults.env.PATH}`,
      'PYTHONDONTWRITEBYTECODE=1',
      ...argv,
    ]).toString()
  for (const tool of [
    'python3',
    'pip',
    'node',
    'npm',
    'git',
    'curl',
    'jq',
    'sudo',
    'bash',
    'ps',
    'ip',
    'ping',
    'less',
    'npx',
    'corepack',
    'wget',
    'vi',
    'rg',
    'gcc',
    'g++',
    'make',
    'pkg-config',
    'xz',
    'zstd',
    'unzip',
  ]) {
    assert.match(inside('1000:1000', 'which', tool), new RegExp(`/${RegExp.escape(tool)}\n$`))
  }
  assert.equal(inside('1000:1000', 'id', '-un'), 'user\n')
  assert.equal(inside('1000:1000', 'sudo', '-n', 'id', '-u'), '0\n')
  assert.match(inside('1000:1000', 'python3', '-c', 'import venv, ssl; print("fine")'), /fine/)
  assert.match(inside('1000:1000', 'node', '--version'), /^v24\./)
  inside('1000:1000', 'sh', '-c', 'test -w /usr/local/bin && test -w /usr/local/lib/node_modules')
  const program = '#include <cstdio>\nint main() { std::puts("built"); }'
  const build = `d=$(mktemp -d) && cd $d && echo '${program}' > a.cc && make -s a && ./a && rm -r $d`
  assert.equal(inside('1000:1000', 'sh', '-c', build), 'built\n')
  const { node, npm, python, git, gcc } = base.versions!
  assert.match(node!, /^24\./)
  for (const version of [npm, python, git, gcc]) assert.match(version!, /^\d+(\.\d+)+$/)
})

test('the base has a home and a workspace of the user, and nothing of the build or of this machine', async () => {
  for (const path of ['home/user', 'workspace']) assert.equal((await lstat(join(root, path))).uid, 1000)
  assert.equal((await lstat(join(root, 'workspace'))).mode & 0o777, 0o777)
  for (const path of [
    'dev',
    'tmp',
    'var/cache/apt/archives/partial',
    'var/lib/apt/lists/partial',
    'etc/apt/auth.conf.d',
  ]) {
    assert.deepEqual(await readdir(join(root, path)), [], path)
  }
  assert.deepEqual(await readdir(join(root, 'var/lib/apt/lists')), ['partial'])
  for (const path of ['etc/resolv.conf', 'etc/machine-id'])
    assert.equal(await readFile(join(root, path), 'utf8'), '', path)
  assert.equal(await readFile(join(root, 'etc/hostname'), 'utf8'), 'islet\n')
  assert.deepEqual(base.trees, [
    { tree: 'root', at: '/', lowers: [{ kind: 'image', name: base.name, tree: 'root' }] },
  ])
})

test('the list of runtimes says what the base is', async () => {
  const images = createImages({ imagesDir: join(root, '../..'), inUse: async () => new Set() })
  const found = (await images.runtimes()).find(({ name }) => name === 'base')!
  assert.deepEqual(found.source, base.source)
  assert.match(found.description, /^Debian [a-z]+, node 24\..*, npm .*, python 3\..*, git .*, gcc /)
  assert.equal(found.made?.createdAt, base.createdAt)
  assert.deepEqual(found.made?.versions, base.versions)
  assert.ok(found.made!.sizeBytes > 100_000_000)
})

test('a second build from the same inputs is the first', async () => {
  const { image } = await baseImageForTests()
  assert.deepEqual(image, base)
})

test('the cache of these tests has an entry for each definition, and drops entries that were unused for long', async () => {
  await using dir = await scratch()
  const old = new Date(Date.now() - 30 * 24 * 3_600_000)
  for (const name of ['forgotten', 'mine', 'other'])
    await mkdir(join(dir.path, name, 'images/img'), { recursive: true })
  for (const name of ['forgotten', 'mine']) await utimes(join(dir.path, name), old, old)
  assert.equal(await cacheEntry(dir.path, 'mine'), join(dir.path, 'mine'))
  assert.deepEqual((await readdir(dir.path)).sort(), ['lock', 'mine', 'other'])
})

test('a build that is cancelled stops and leaves nothing, mounted or stored', async () => {
  await using dir = await scratch()
  const cancel = new AbortController()
  const onProgress = ({ message }: { message: string }) => message.startsWith('downloading') && cancel.abort()
  await assert.rejects(dir.images().buildBase({ signal: cancel.signal, onProgress }), { name: 'AbortError' })
  assert.deepEqual(await readdir(join(dir.path, 'images')), [])
  assert.equal((await readFile('/proc/self/mountinfo', 'utf8')).includes(dir.path), false)
  await assert.rejects(dir.images().buildBase({ packages: ['--hook=x'] }), { code: 'bad_request' })
})

const DEB822 = {
  path: 'sources.list.d/debian.sources',
  content: `# a comment
Types: deb
URIs: http://mirror.test/debian
Suites: trixie
  trixie-updates
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: trixie-security
Components: main
Enabled: no

Types: deb
URIs: https://vendor.test/node
Suites: nodistro
Components: main
`,
}
const ONE_LINE = {
  path: 'sources.list',
  content: `deb cdrom:[Debian]/ trixie main
# deb http://off.test/debian trixie main
deb [arch=amd64 signed-by=/etc/apt/keyrings/m.gpg] http://mirror.test/debian trixie main
deb-src http://mirror.test/debian trixie main
deb http://vendor.test/linux trixie stable
`,
}

test("of the machine's package sources only the distribution's own archive is used", () => {
  const sources = [DEB822, ONE_LINE]
  assert.equal(suiteOf(sources), 'trixie')
  const own = archiveOf(sources, 'trixie')
  assert.deepEqual(
    own.map(({ path }) => path),
    ['sources.list.d/debian.sources', 'sources.list'],
  )
  assert.match(
    own[0]!.content,
    /^Types: deb\nURIs: http:\/\/mirror\.test\/debian\nSuites: trixie\n {2}trixie-updates\nComponents: main contrib\nSigned-By: .*\n$/,
  )
  assert.equal(
    own[1]!.content,
    'deb [arch=amd64 signed-by=/etc/apt/keyrings/m.gpg] http://mirror.test/debian trixie main\n',
  )
  assert.equal(mirrorOf(own), 'http://mirror.test/debian')
  assert.deepEqual(keyringsOf(own), ['/usr/share/keyrings/archive.gpg', '/etc/apt/keyrings/m.gpg'])
})
