import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { lstat, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Progress } from '../image.ts'
import { overlayMarks, type Scratch, scratch } from '../scratch.ts'
import { freePort, type Registry, startRegistry } from './registry.scratch.ts'

let ground: Scratch
let registry: Registry

before(async () => {
  ground = await scratch()
  registry = await startRegistry(ground.path)
})
beforeEach(() => {
  registry.door = 'open'
  registry.blobs.length = 0
})
after(async () => {
  await registry[Symbol.asyncDispose]()
  await ground[Symbol.asyncDispose]()
})

/** Always the same, and hard to compress. */
const noise = (outputLength: number) => createHash('shake256', { outputLength }).digest('base64')
const LAYERS = [
  [
    { name: 'etc/', type: '5' },
    { name: 'etc/passwd', content: 'root:x:0:0::/root:/bin/sh\nwww:x:33:33::/:/bin/sh\n', mode: 0o644 },
    { name: 'bin/sh', content: '#!', mode: 0o4755 },
    { name: 'old', content: 'x' },
    { name: 'big', content: noise(200_000) },
  ],
  [{ name: '.wh.old' }, { name: 'srv/www/index', content: 'hello', uid: 33 }],
] as const
const CONFIG = [
  '--config.env',
  'GREETING=hello world',
  '--config.env',
  'HOME=/nowhere',
  '--config.workingdir',
  '/srv/www',
  '--config.user',
  'www',
]
const insecure = true

test('a pulled image has the files, ids and settings of its layers, and a user', async () => {
  await using dir = await scratch()
  await registry.push('team/app:1', LAYERS, CONFIG)
  const images = dir.images()
  const reference = `${registry.address}/team/app:1`
  const told: Progress[] = []
  const image = await images.pull(reference, {
    name: 'app',
    insecure,
    onProgress: (progress) => told.push(progress),
  })

  const at = (tree: string, file: string) => join(dir.path, 'images', image.name, tree, file)
  assert.equal((await lstat(at('root', 'srv/www/index'))).uid, 33)
  assert.equal((await lstat(at('root', 'bin/sh'))).mode & 0o7777, 0o4755)
  await assert.rejects(lstat(at('root', 'old')), { code: 'ENOENT' })
  assert.match(
    await readFile(at('adapt', 'etc/passwd'), 'utf8'),
    /^www.*\nuser:x:1000:1000::\/home\/user:\/bin\/sh$/m,
  )
  assert.equal(image.defaults.user, 'user')
  assert.equal(image.defaults.workdir, '/srv/www')
  assert.equal(image.defaults.env.GREETING, 'hello world')
  assert.equal(image.defaults.env.HOME, undefined)
  assert.ok(image.defaults.env.PATH)
  assert.deepEqual(image.source, { kind: 'oci', reference })
  assert.ok(image.sizeBytes > 200_000)

  assert.deepEqual([...new Set(told.map(({ stage }) => stage))], ['resolve', 'download', 'unpack', 'finish'])
  const fractions = told.flatMap(({ fraction }) => fraction ?? [])
  assert.deepEqual(
    fractions,
    fractions.toSorted((a, b) => a - b),
  )
  assert.equal((await images.resolve('app')).name, image.name)
  assert.deepEqual((await readdir(join(dir.path, 'images'))).sort(), [image.name, 'runtimes.json'])
})

test('a second pull of the same digest downloads nothing; a new digest is pulled anew', async () => {
  await using dir = await scratch()
  await registry.push('team/moving:1', LAYERS)
  const reference = `${registry.address}/team/moving:1`
  const first = await dir.images().pull(reference, { insecure })
  assert.notEqual(registry.blobs.length, 0)
  registry.blobs.length = 0
  const images = dir.images()
  assert.deepEqual(await images.pull(reference, { insecure }), first)
  assert.deepEqual(registry.blobs, [])

  await registry.push('team/moving:1', [...LAYERS, [{ name: 'new', content: 'new' }]])
  const second = await images.pull(reference, { insecure })
  assert.notEqual(second.name, first.name)
  assert.equal((await images.resolve(reference)).name, second.name)
  const pinned = await images.pull(`${registry.address}/team/moving@sha256:${first.digest}`, {
    name: 'pinned',
    insecure,
  })
  assert.equal(pinned.name, first.name)
})

test('pulls of one reference at the same time share one download, and each gives its name', async () => {
  await using dir = await scratch()
  await registry.push('team/shared:1', LAYERS)
  const images = dir.images()
  const names = ['a', 'b', 'c']
  const pulled = await Promise.all(
    names.map((name) => images.pull(`${registry.address}/team/shared:1`, { name, insecure })),
  )
  assert.equal(new Set(pulled.map(({ createdAt }) => createdAt)).size, 1)
  assert.equal(new Set(registry.blobs).size, registry.blobs.length)
  for (const name of names) assert.equal((await images.resolve(name)).name, pulled[0]?.name)
})

test('two servers that pull the same into one directory end with one whole image', async () => {
  await using dir = await scratch()
  await registry.push('team/race:1', LAYERS)
  const reference = `${registry.address}/team/race:1`
  const [one, two] = await Promise.all([
    dir.images().pull(reference, { insecure }),
    dir.images().pull(reference, { insecure }),
  ])
  assert.equal(one.name, two.name)
  assert.deepEqual((await readdir(join(dir.path, 'images'))).sort(), [one.name, 'runtimes.json'])
  assert.equal(await readFile(join(dir.path, 'images', one.name, 'root/srv/www/index'), 'utf8'), 'hello')
})

test('a pull that is cancelled on its way stops and leaves nothing; another caller of it goes on', async () => {
  await using dir = await scratch()
  await registry.push('team/slow:1', LAYERS)
  const reference = `${registry.address}/team/slow:1`
  const images = dir.images()
  registry.door = 'stall'
  const cancel = new AbortController()
  const onProgress = ({ fraction = 0 }: Progress) => {
    if (fraction > 0) cancel.abort()
  }
  await assert.rejects(images.pull(reference, { insecure, signal: cancel.signal, onProgress }), {
    name: 'AbortError',
  })
  assert.deepEqual(await readdir(join(dir.path, 'images')), [])

  const one = new AbortController()
  const other = new AbortController()
  const arrived = Promise.withResolvers<void>()
  const first = images.pull(reference, {
    insecure,
    signal: one.signal,
    onProgress: ({ fraction = 0 }) => fraction > 0 && arrived.resolve(),
  })
  const second = images.pull(reference, { insecure, signal: other.signal })
  await arrived.promise
  one.abort()
  await assert.rejects(first, { name: 'AbortError' })
  assert.equal((await readdir(join(dir.path, 'images'))).length, 1)
  other.abort()
  await assert.rejects(second, { name: 'AbortError' })
  assert.deepEqual(await readdir(join(dir.path, 'images')), [])
  registry.door = 'open'
  await images.pull(reference, { insecure })
})

test('a server that is killed while it pulls leaves no process, and the next one sweeps what it wrote', async (t) => {
  await using dir = await scratch()
  await registry.push('team/killed:1', LAYERS)
  registry.door = 'stall'
  const imagesDir = join(dir.path, 'images')
  const script = `
    const { createImages } = await import(${JSON.stringify(new URL('../images.ts', import.meta.url).href)})
    const images = createImages({ imagesDir: ${JSON.stringify(imagesDir)}, inUse: async () => new Set() })
    const onProgress = ({ fraction = 0 }) => fraction > 0 && console.log('arriving')
    await images.pull(${JSON.stringify(`${registry.address}/team/killed:1`)}, { insecure: true, onProgress })`
  const server = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => server.kill('SIGKILL'))
  await once(server.stdout, 'data')
  const [left] = await readdir(imagesDir)
  const pullers = await processesWith(left!)
  assert.notEqual(pullers.length, 0)
  server.kill('SIGKILL')
  await once(server, 'exit')
  while ((await processesWith(left!)).length > 0) await sleep(20)
  await dir.images({ hostRoot: dir.path }).collect()
  assert.deepEqual(await readdir(imagesDir), [])
})

test('failures of the registry have their own errors', async () => {
  await using dir = await scratch()
  await registry.push('team/wrong:1', LAYERS)
  const images = dir.images()
  const at = registry.address
  await assert.rejects(images.pull(`${at}/team/none:1`, { insecure }), { code: 'image_not_found' })
  await assert.rejects(images.pull(`${at}/team/wrong:2`, { insecure }), { code: 'image_not_found' })
  await assert.rejects(images.pull(`${at}/team/wrong:1`), {
    code: 'bad_request',
    message: /does not speak TLS/,
  })
  await assert.rejects(images.pull(`127.0.0.1:${await freePort()}/team/wrong:1`, { insecure }), {
    message: /cannot be reached/,
  })
  registry.door = 'spoil'
  await assert.rejects(images.pull(`${at}/team/wrong:1`, { insecure }), { message: /damaged/ })
  registry.door = 'refuse'
  await assert.rejects(images.pull(`${at}/team/wrong:1`, { insecure }), { code: 'forbidden' })
  for (const bad of [
    '',
    'UPPER/case:1',
    'a b',
    '--help',
    'x:y:z',
    'x@sha256:12',
    'oci:/etc',
    'http://x/y',
    'x/../y',
    '$(id)',
    'x'.repeat(600),
  ]) {
    await assert.rejects(images.pull(bad), { code: 'bad_request' }, bad)
  }
  assert.deepEqual(await readdir(join(dir.path, 'images')), [])
})

test('an image with hostile links, devices and overlay marks touches nothing outside of itself', async () => {
  await using dir = await scratch()
  const xattrs = { 'trusted.overlay.opaque': 'y', 'trusted.overlay.redirect': '/etc' }
  await registry.push('team/evil:1', [
    [
      { name: 'etc', type: '2', target: dir.path },
      { name: 'home', type: '2', target: `../../../../../../../..${dir.path}` },
      { name: 'loop', type: '2', target: 'loop' },
      { name: 'disk', type: '3', mode: 0o666 },
      { name: 'marked/', type: '5', xattrs },
    ],
    [
      { name: 'etc/planted', content: 'x' },
      { name: 'home/planted', content: 'x' },
    ],
  ])
  const image = await dir.images().pull(`${registry.address}/team/evil:1`, { insecure })
  assert.deepEqual(await readdir(dir.path), ['images'])
  const root = join(dir.path, 'images', image.name, 'root')
  assert.equal((await readdir(root)).includes('disk'), false)
  assert.equal(overlayMarks(join(dir.path, 'images')), '')
})

test('an image with a single program gets what a sandbox needs', async () => {
  await using dir = await scratch()
  await registry.push('team/static:1', [[{ name: 'app', content: 'x' }]], ['--config.workingdir', '/'])
  const image = await dir.images().pull(`${registry.address}/team/static:1`, { insecure })
  const adapt = join(dir.path, 'images', image.name, 'adapt')
  assert.match(await readFile(join(adapt, 'etc/passwd'), 'utf8'), /^root:x:0:0:.*\nuser:x:1000:1000:/)
  assert.equal((await lstat(join(adapt, 'tmp'))).mode & 0o7777, 0o1777)
  assert.equal(image.defaults.workdir, '/home/user')
})

test('a multi-architecture image is pulled for this machine, or refused if it has no match', async () => {
  await using dir = await scratch()
  const own = process.arch === 'x64' ? 'amd64' : process.arch
  await registry.push('team/many:single', LAYERS)
  await registry.pushIndex('team/many:own', 'team/many:single', own)
  await registry.pushIndex('team/many:other', 'team/many:single', 's390x')
  const images = dir.images()
  const single = await images.pull(`${registry.address}/team/many:single`, { insecure })
  assert.equal((await images.pull(`${registry.address}/team/many:own`, { insecure })).name, single.name)
  await assert.rejects(images.pull(`${registry.address}/team/many:other`, { insecure }), {
    code: 'not_supported',
  })
})

test('credentials come from the containers auth file of the machine', async () => {
  await using dir = await scratch()
  await registry.push('team/private:1', LAYERS)
  const auth = Buffer.from('someone:password').toString('base64')
  const file = join(dir.path, 'auth.json')
  await writeFile(file, JSON.stringify({ auths: { [registry.address]: { auth } } }))
  registry.door = 'refuse'
  registry.guest = `Basic ${auth}`
  const reference = `${registry.address}/team/private:1`
  await assert.rejects(dir.images().pull(reference, { insecure }), { code: 'forbidden' })
  process.env.REGISTRY_AUTH_FILE = file
  try {
    await dir.images().pull(reference, { insecure })
  } finally {
    delete process.env.REGISTRY_AUTH_FILE
    registry.guest = undefined
  }
})

/** Processes that have this word in their arguments. */
async function processesWith(word: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes(word))
}
