import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, readdir, readFile, readlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { plant, scratch } from '../scratch.ts'

const MACHINE = {
  'usr/bin/bash': '#!',
  'usr/lib/': '',
  bin: '-> usr/bin',
  lib: '-> usr/lib',
  'etc/passwd':
    'root:x:0:0:root:/root:/bin/zsh\nman:x:6:12::/var/cache/man:/bin/sh\nalice:x:1000:1000:Alice Liddell:/home/alice:/bin/bash\n',
  'etc/group': 'root:x:0:\nshadow:x:42:alice\nalice:x:1000:\n',
  'etc/shadow': 'root:$6$SECRET:19000::::::\n',
  'etc/ssl/certs/ca-certificates.crt': 'BEGIN CERTIFICATE',
  'etc/ssl/certs/mixed.pem': '-----BEGIN PRIVATE KEY-----SECRET',
  'etc/ssl/private/server.key': 'SECRET',
  'etc/alternatives/editor': '-> /usr/bin/vim',
  'etc/skel/.bashrc': 'PS1=x\n',
  'etc/skel/.profile': '-> /root/.netrc',
  'etc/apt/sources.list': 'deb http://mirror.test/debian bookworm main\n',
  'etc/apt/sources.list.d/private.list': 'deb http://me:SECRET@mirror.test/debian bookworm main\n',
  'etc/apt/auth.conf': 'machine mirror.test password SECRET\n',
  'etc/apt/auth.conf.d/mine.conf': 'password SECRET\n',
  'etc/profile': 'PATH=/usr/bin\n',
  'etc/profile.d/token.sh': 'export TOKEN=SECRET\n',
  'etc/environment': 'TOKEN=SECRET\n',
  'etc/services': 'SECRET\n',
  'etc/npmrc': '_authToken=SECRET\n',
  'etc/java-17-openjdk/security/java.security': 'x=y\n',
  'etc/java-17-openjdk/management/jmxremote.password': 'SECRET\n',
  'etc/islet/key': 'SECRET\n',
  'root/.netrc': 'SECRET',
  'home/alice/.ssh/id_ed25519': 'SECRET',
  'var/lib/thing/state': 'SECRET',
  'var/lib/dpkg/status': [
    'Package: bash\nStatus: install ok installed\nEssential: yes\nVersion: 5.2\nArchitecture: amd64\nConffiles:\n /etc/SECRET 0123\nDescription: shell\n more',
    'Package: libc6\nStatus: hold ok installed\nMulti-Arch: same\nVersion: 2.36\nArchitecture: amd64',
    'Package: gone\nStatus: deinstall ok config-files\nVersion: 1\nArchitecture: all',
    'Package: ../../SECRET\nStatus: install ok installed\nVersion: 1\nArchitecture: all',
    'Package: bash\nStatus: install ok installed\nVersion: 6\nArchitecture: amd64\n',
  ].join('\n\n'),
} as const
const MODES = { 'etc/services': 0o600 }

test('the host root holds what a sandbox needs and nothing that is private to the machine', async () => {
  await using dir = await scratch()
  const hostRoot = join(dir.path, 'machine')
  await plant(hostRoot, MACHINE, MODES)
  const image = await dir.images({ hostRoot }).resolve('host')
  const root = join(dir.path, 'images', image.name, 'root')

  const files = await textsBelow(root)
  const leaks = [...files].filter(([, text]) => /SECRET|alice|Alice/.test(text)).map(([path]) => path)
  assert.deepEqual(leaks, [])
  assert.equal(files.get('etc/ssl/certs/ca-certificates.crt'), 'BEGIN CERTIFICATE')
  assert.equal(files.get('etc/apt/sources.list'), MACHINE['etc/apt/sources.list'])
  assert.equal(files.get('home/user/.bashrc'), 'PS1=x\n')
  assert.equal(files.has('etc/java-17-openjdk/security/java.security'), true)
  assert.equal(await readlink(join(root, 'bin')), 'usr/bin')
  assert.equal(await readlink(join(root, 'etc/alternatives/editor')), '/usr/bin/vim')
  assert.match(files.get('etc/passwd')!, /^root:x:0:0::\/root:\/bin\/bash$/m)
  assert.match(files.get('etc/passwd')!, /^user:x:1000:1000::\/home\/user:\/bin\/bash$/m)
  assert.match(files.get('etc/shadow')!, /^root:\*:/m)
  const status = execFileSync('dpkg-query', [`--admindir=${join(root, 'var/lib/dpkg')}`, '--show']).toString()
  assert.equal(status, 'bash\t5.2\nlibc6:amd64\t2.36\n')
  assert.deepEqual(
    [...files.keys()].filter((path) => path.startsWith('var/lib/dpkg/info/')).sort(),
    ['bash.list', 'format', 'islet-empty.list', 'libc6:amd64.list'].map(
      (name) => `var/lib/dpkg/info/${name}`,
    ),
  )
  assert.match(files.get('etc/sudoers.d/islet')!, /^user .*NOPASSWD: ALL$/m)

  const modes = {
    '.': 0o755,
    tmp: 0o1777,
    'var/tmp': 0o1777,
    root: 0o700,
    workspace: 0o777,
    'etc/shadow': 0o640,
    'etc/sudoers': 0o440,
  }
  for (const [path, mode] of Object.entries(modes))
    assert.equal((await lstat(join(root, path))).mode & 0o7777, mode, path)
  for (const path of ['home/user', 'home/user/.bashrc', 'workspace'])
    assert.equal((await lstat(join(root, path))).uid, 1000, path)
  for (const path of ['proc', 'sys', 'dev', 'run', '.islet', 'usr'])
    assert.deepEqual(
      await readdir(join(root, path)).then((names) => names.filter((name) => name !== 'lock')),
      [],
      path,
    )
  assert.equal((await lstat(join(dir.path, 'images'))).mode & 0o777, 0o700)
})

test("the host image mounts its own root and the machine's /usr, and `base` means it until a base is built", async () => {
  await using dir = await scratch()
  const hostRoot = join(dir.path, 'machine')
  await plant(hostRoot, MACHINE)
  const images = dir.images({ hostRoot })
  const image = await images.resolve('base')
  assert.deepEqual(image.trees, [
    { tree: 'root', at: '/', lowers: [{ kind: 'image', name: image.name, tree: 'root' }] },
    { tree: 'usr', at: '/usr', lowers: [{ kind: 'host-usr' }] },
  ])
  assert.equal(image.defaults.user, 'user')
  assert.equal(image.defaults.workdir, '/home/user')
  assert.equal((await images.resolve('host')).name, image.name)
  assert.equal((await images.resolve(image.name)).name, image.name)
  assert.deepEqual(
    (await images.list()).map(({ runtimes }) => runtimes),
    [['base', 'host']],
  )
})

test('the host image is made once, and anew when the machine has changed', async () => {
  await using dir = await scratch()
  const hostRoot = join(dir.path, 'machine')
  await plant(hostRoot, MACHINE)
  const images = dir.images({ hostRoot })
  const [first, second] = await Promise.all([images.resolve('host'), images.resolve('base')])
  assert.equal(first.createdAt, second.createdAt)
  assert.equal((await dir.images({ hostRoot }).resolve('host')).createdAt, first.createdAt)

  await utimes(join(hostRoot, 'etc/passwd'), 1, 1)
  const changed = dir.images({ hostRoot })
  const third = await changed.resolve('host')
  assert.notEqual(third.name, first.name)
  assert.deepEqual((await changed.collect()).removed, [first.name])
})

test('a machine whose /bin is not merged into /usr gets copies of it, without kernel modules', async () => {
  await using dir = await scratch()
  const hostRoot = join(dir.path, 'machine')
  await plant(hostRoot, {
    'usr/bin/': '',
    'bin/sh': 'shell',
    'lib/libc.so': 'libc',
    'lib/modules/6.1/x.ko': 'module',
    'etc/': '',
  })
  const image = await dir.images({ hostRoot }).resolve('host')
  const files = await textsBelow(join(dir.path, 'images', image.name, 'root'))
  assert.equal(files.get('bin/sh'), 'shell')
  assert.equal(files.get('lib/libc.so'), 'libc')
  assert.equal(files.has('lib/modules/6.1/x.ko'), false)
})

test('runtimes are listed with what is ready, and errors say what to do', async () => {
  await using dir = await scratch()
  const images = dir.images()
  const runtimes = await images.runtimes()
  const ready = runtimes.filter(({ image }) => image).map(({ name }) => name)
  assert.deepEqual(ready, ['base', 'host'])
  const base = runtimes.find(({ name }) => name === 'base')!
  assert.deepEqual([base.source, base.made], [{ kind: 'host' }, undefined])
  assert.match(base.description, /This machine's own programs.*islet image build base/)
  assert.ok(runtimes.some(({ name }) => name === 'python:3.13'))
  await assert.rejects(images.resolve('python:3.13'), {
    code: 'runtime_not_ready',
    message: 'The image of the runtime python:3.13 is not on this machine.',
  })
  await assert.rejects(images.resolve('nope'), { code: 'runtime_not_found' })
  await assert.rejects(images.resolve('img-0000000000000000'), { code: 'image_not_found' })
  await assert.rejects(images.resolve('../etc'), { code: 'runtime_not_found' })
})

async function textsBelow(root: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) found.set(path.slice(root.length + 1), await readFile(path, 'utf8'))
    if (entry.isSymbolicLink()) found.set(path.slice(root.length + 1), await readlink(path))
  }
  return found
}
