// Packages that are installed before a sandbox begins, and runtimes that are made on first use. Most tests use an image with an
// installer of our own, which does what its packages are called; the last ones use apt, npm and PyPI.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type CreateOptions, hasCode, type ImageStep, IsletError, type Sandbox } from 'islet'
import { baseImageForTests } from '../../packages/server/src/image/testing.ts'
import { until } from '../coming-from/until.ts'
import { heldBy } from '../support/held.ts'
import { copyProgram } from '../support/programs.ts'
import { ISLET, WITHOUT_WARM } from '../support/server.ts'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const PIP = `#!/bin/sh
for word in "$@"; do
  case $word in
    slow) echo 'Collecting slow'; sleep 600 ;;
    loud)
      i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done
      printf '%100000s' end; printf '\\n\\033[31mERROR: too \\007 loud\\033[0m http://me:secret@pip.test/\\n'; exit 3 ;;
    nothing) echo 'ERROR: No matching distribution found for nothing'; exit 1 ;;
    away) echo 'ERROR: Connection refused'; echo 'ERROR: No matching distribution found for away'; exit 1 ;;
    change)
      rm -rf /srv/old && mkdir /srv/old && echo new > /srv/old/new
      rm /srv/gone && mv /srv/moved /srv/there && echo x > /srv/one && ln /srv/one /srv/two && chmod 4755 /srv/one ;;
  esac
done
printf '%s\\n' "$@" > /srv/arguments
`
/** What `change` leaves. */
const CHANGED =
  'for f in /srv/* /srv/*/*; do echo $f; done; [ /srv/one -ef /srv/two ] && [ -u /srv/two ] && cat /srv/old/new /srv/there/file'
const FILES = '/srv/arguments /srv/old /srv/one /srv/there /srv/two /srv/old/new /srv/there/file new moved'

const { imagesDir, image: base } = await baseImageForTests()
// A directory of its own, because images are removed, on the filesystem of the base, so that its files can be linked.
const dataDir = mkdtempSync(join(imagesDir, '../test-'))
const images = join(dataDir, 'images')
mkdirSync(images)
execFileSync('cp', ['-al', join(imagesDir, base.name), images])
writeFileSync(
  join(images, 'runtimes.json'),
  JSON.stringify({ base: { image: base.name, source: base.source } }),
)
const { server, islet } = await startSuite({ dataDir, env: WITHOUT_WARM })
const scratch = mkdtempSync(join(tmpdir(), 'islet-packages-'))
after(() => rmSync(scratch, { recursive: true }))

before(async () => {
  const root = join(scratch, 'root')
  for (const name of ['sh', 'sleep', 'rm', 'mkdir', 'mv', 'ln', 'cat', 'chmod'])
    copyProgram(`/bin/${name}`, root)
  for (const path of ['usr/bin', 'srv/old', 'srv/moved']) mkdirSync(join(root, path), { recursive: true })
  for (const path of ['srv/old/old', 'srv/gone']) writeFileSync(join(root, path), 'old\n')
  writeFileSync(join(root, 'srv/moved/file'), 'moved\n')
  writeFileSync(join(root, 'usr/bin/pip'), PIP)
  chmodSync(join(root, 'usr/bin/pip'), 0o755)
  const tar = join(scratch, 'tools.tar')
  execFileSync('tar', ['-cf', tar, '-C', root, '.'])
  await promisify(execFile)(process.execPath, [ISLET, 'image', 'import', tar, '--name', 'tools'], {
    env: server.clientEnv,
  })
})

/** The sandbox, and the steps that its creation told. */
async function created(options: CreateOptions): Promise<{ sandbox: Sandbox; steps: ImageStep[] }> {
  const steps: ImageStep[] = []
  const sandbox = await islet.sandboxes.create({ ...options, onProgress: (step) => void steps.push(step) })
  return { sandbox, steps }
}

const tools = (...pip: string[]): CreateOptions => ({ runtime: 'tools', pip })

async function failure(options: CreateOptions): Promise<IsletError> {
  const error = await islet.sandboxes.create(options).catch((reason: unknown) => reason)
  assert.ok(error instanceof IsletError, String(error))
  return error
}

const installations = () => server.output.split('packages installed').length - 1
const stagings = () => readdirSync(images).filter((name) => name.startsWith('.tmp-'))
const packageImages = async () =>
  (await islet.images.list()).filter(({ source }) => source.kind === 'packages')

async function deleteAll(): Promise<void> {
  for await (const { id } of islet.sandboxes.all()) await islet.sandboxes.delete(id)
}

test('concurrent creates share one installation, and the next create of the set installs nothing', async () => {
  const names = ['six[a,b]>=1,<2', 'plain==1.0']
  const all = await Promise.all([1, 2, 3].map(() => created(tools(...names))))
  assert.equal(installations(), 1)
  for (const { sandbox, steps } of all) {
    assert.ok(steps.length > 0)
    const words = (await say(sandbox, 'cat /srv/arguments')).split('\n')
    assert.deepEqual(words.slice(words.indexOf('--') + 1), [...names].sort())
  }
  const again = await created(tools(...names.toReversed(), names[0]!))
  assert.deepEqual(again.steps, [])
  assert.equal(installations(), 1)
  const ids = [...all, again].map(async ({ sandbox }) => (await sandbox.getInfo()).image)
  assert.equal(new Set(await Promise.all(ids)).size, 1)
  const result = await islet.run('cat /srv/arguments', { runtime: 'tools', pip: names })
  assert.match(result.stdout, /plain==1\.0/)
  await deleteAll()
})

test('without lines the call waits, and over HTTP the lines end with the sandbox', async () => {
  const plain = await server.post('/v1/sandboxes', { runtime: 'tools', pip: ['waits'] })
  assert.equal(plain.status, 201)
  const { id } = (await plain.json()) as { id: string }
  const response = await server.fetch('/v1/sandboxes', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/x-ndjson' },
    body: JSON.stringify({ runtime: 'tools', pip: ['lines'] }),
  })
  const lines = (await response.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.equal(lines[0].type, 'progress')
  assert.equal(lines.at(-1).type, 'done')
  assert.match(lines.at(-1).sandbox.id, /^sbx-/)
  assert.notEqual(lines.at(-1).sandbox.id, id)
  await deleteAll()
})

test('an installer that fails is told with its last lines, cleaned, and leaves nothing', async () => {
  const loud = await failure(tools('loud'))
  assert.equal(loud.code, 'packages_failed')
  assert.match(loud.message, /pip cannot install the packages: ERROR: too {3}loud http:\/\/pip\.test\/$/)
  const { reason, exitCode, output } = loud.details as { reason: string; exitCode: number; output: string[] }
  assert.deepEqual([reason, exitCode, output.length], ['failed', 3, 40])
  assert.ok(output.every((line) => line.length <= 1000))
  const nothing = await failure(tools('nothing'))
  assert.equal(nothing.details?.reason, 'not_found')
  const away = await failure(tools('away'))
  assert.equal(away.details?.reason, 'network')
  const installers: [CreateOptions, string][] = [
    [{ packages: ['cowsay'] }, 'npm'],
    [{ dependencies: ['jq'] }, 'apt-get'],
  ]
  for (const [options, tool] of installers) {
    const error = await failure({ runtime: 'tools', ...options })
    assert.equal(error.details?.reason, 'missing_tool')
    assert.match(error.message, new RegExp(`has no ${tool}`))
    assert.ok(error.hint)
  }
  await until(async () => stagings().length === 0)
  const { cells, layers, cgroups } = heldBy(server)
  assert.deepEqual({ cells, layers, cgroups }, { cells: 0, layers: 0, cgroups: 0 })
})

test('what cannot be installed is refused before anything begins', async () => {
  await failsWith(islet.sandboxes.create({ ...tools('six'), packages: ['-g'] }), 'bad_request')
  await failsWith(islet.sandboxes.create({ snapshot: 'any', pip: ['six'] }), 'bad_request')
  await failsWith(islet.run('true', { snapshot: 'any', packages: ['cowsay'] }), 'bad_request')
})

test('a caller that leaves does not end the installation of another; the last one does, and no sandbox comes later', async () => {
  const one = new AbortController()
  const two = new AbortController()
  const told = Promise.withResolvers<void>()
  const onProgress = ({ message }: ImageStep) => message.includes('Collecting') && told.resolve()
  const calls = [one, two].map(({ signal }) => {
    const call = islet.sandboxes.create({ ...tools('slow'), signal, onProgress })
    call.catch(() => {})
    return call
  })
  await told.promise
  one.abort()
  await assert.rejects(calls[0]!, { name: 'AbortError' })
  assert.equal(heldBy(server).cells, 1)
  two.abort()
  await assert.rejects(calls[1]!, { name: 'AbortError' })
  const careless = (): never => {
    throw new Error('a mistake of the caller')
  }
  await assert.rejects(islet.sandboxes.create({ ...tools('slow'), onProgress: careless }), /a mistake/)
  await until(async () => heldBy(server).layers + heldBy(server).cells + stagings().length === 0)
  assert.deepEqual((await islet.sandboxes.list()).sandboxes, [])
})

test('with one Idempotency-Key the second caller goes on when the first one leaves during the installation', async () => {
  const idempotencyKey = 'the-same'
  const gates = [1, 2].map(() => ({ leaves: new AbortController(), told: Promise.withResolvers<void>() }))
  const calls = gates.map(async ({ leaves: { signal }, told }, index) => {
    if (index === 1) await gates[0]!.told.promise
    const onProgress = ({ message }: ImageStep) => message.includes('Collecting') && told.resolve()
    return islet.sandboxes.create({ ...tools('slow'), idempotencyKey, signal, onProgress })
  })
  for (const call of calls) call.catch(() => {})
  for (const [index, { leaves, told }] of gates.entries()) {
    await told.promise
    leaves.abort()
    await assert.rejects(calls[index]!, { name: 'AbortError' })
  }
  await until(async () => heldBy(server).layers + heldBy(server).cells + stagings().length === 0)
})

test('a server that is killed during an installation leaves nothing of it, and the next create installs', async () => {
  const told = Promise.withResolvers<void>()
  const before = (await packageImages()).length
  const onProgress = ({ message }: ImageStep) => message.includes('Collecting') && told.resolve()
  const cut = islet.sandboxes.create({ ...tools('slow'), onProgress })
  cut.catch(() => {})
  await told.promise
  await server.kill()
  await assert.rejects(cut, (error) => hasCode(error, 'connection_failed'))
  await server.start()
  await until(async () => stagings().length === 0)
  const { cells, layers, cgroups } = heldBy(server)
  assert.deepEqual({ cells, layers, cgroups }, { cells: 0, layers: 0, cgroups: 0 })
  assert.equal((await packageImages()).length, before)
  const kept = await created(tools('plain==1.0', 'six[a,b]>=1,<2'))
  assert.deepEqual(kept.steps, [], 'a set that was installed before is kept')
  const other = await created(tools('after'))
  assert.ok(other.steps.length > 0)
  await deleteAll()
})

test('forks, checkpoints, snapshots and their files keep the packages', async () => {
  const { sandbox } = await created(tools('change'))
  const changed = async (one: Sandbox) => (await say(one, CHANGED)).split('\n').join(' ')
  assert.equal(await changed(sandbox), FILES)
  await say(sandbox, 'rm /srv/arguments && echo own > /srv/there/own', { user: 'root' })
  const own = `${FILES.replace('/srv/arguments ', '').replace(' new moved', ' /srv/there/own new moved')}`
  const [fork] = await sandbox.fork({ count: 1 })
  assert.ok(fork!.ok)
  assert.equal(await changed(fork!.sandbox), own)
  const { id: checkpoint } = await sandbox.createCheckpoint('now')
  assert.equal(await changed(await islet.checkpoints.createSandbox(checkpoint)), own)
  const snapshot = await sandbox.createSnapshot()
  // Nothing but saved states needs the packages now.
  await deleteAll()
  await islet.prune()
  assert.equal(await changed(await islet.sandboxes.create({ snapshot: snapshot.id })), own)
  const file = Buffer.from(await new Response(await islet.snapshots.export(snapshot.id)).arrayBuffer())
  const imported = await islet.snapshots.import(file)
  const copy = await islet.sandboxes.create({ snapshot: imported.id })
  assert.equal(await changed(copy), own)
  const kinds = new Map((await islet.images.list()).map(({ name, source }) => [name, source.kind]))
  assert.equal(
    kinds.get((await copy.getInfo()).image!),
    'tar',
    'an image of packages becomes a part of the layer',
  )
  await deleteAll()
  for (const { id } of (await islet.snapshots.list()).snapshots) await islet.snapshots.delete(id)
  await islet.prune({ checkpoints: true })
})

test('prune removes unused packages and keeps used ones, and the image below them', async () => {
  const { sandbox } = await created(tools('used'))
  const unused = await created(tools('unused'))
  const nested = await created({ runtime: (await unused.sandbox.getInfo()).image!, pip: ['over'] })
  assert.match(await say(nested.sandbox, 'cat /srv/arguments'), /over/)
  const below = (await islet.runtimes.list()).find(({ name }) => name === 'tools')!.image!
  const [used, gone, top] = await Promise.all(
    [sandbox, unused.sandbox, nested.sandbox].map(async (one) => (await one.getInfo()).image!),
  )
  await unused.sandbox.kill()
  const names = async () => (await islet.images.list()).map(({ name }) => name)
  await islet.prune()
  assert.ok([used, gone, top].every(async (name) => (await names()).includes(name!)))
  await nested.sandbox.kill()
  const later = await islet.prune({ olderThan: '1h', dryRun: true })
  assert.deepEqual(later.images, [], 'they were used a moment ago')
  const { images: removed } = await islet.prune()
  assert.deepEqual(removed.map(({ name }) => name).sort(), [gone, top].sort())
  await failsWith(islet.images.remove(below), 'image_in_use')
  await failsWith(islet.images.remove(used!), 'image_in_use')
  assert.ok((await names()).includes(below))
  assert.ok((await created(tools('unused'))).steps.length > 0, 'it is installed again')
  await deleteAll()
})

test('islet run installs packages, and only a terminal sees the progress', async () => {
  const words = [
    'run',
    '--runtime',
    'tools',
    '--pip',
    'six>=1,<2,cli',
    '--pip',
    'more[a,b]',
    'cat /srv/arguments',
  ]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [ISLET, ...words], {
    env: server.clientEnv,
  })
  assert.deepEqual(stdout.trim().split('\n').slice(-3), ['cli', 'more[a,b]', 'six>=1,<2'])
  assert.equal(stderr, '')
})

test('on the Debian base apt and npm install what was asked for', async () => {
  const options = { runtime: 'base', dependencies: ['jq', 'hello'], packages: ['cowsay'] }
  const { sandbox } = await created(options)
  assert.match(await say(sandbox, 'hello && cowsay moo && echo {} | jq -c .'), /Hello, world!.*moo.*\{\}/s)
  // npm of the user can change what was installed.
  await say(sandbox, 'npm rm -g cowsay && ! which cowsay')
  await say(sandbox, 'test ! -e /usr/sbin/policy-rc.d && test ! -e /tmp/islet-packages')
  const second = await created(options)
  assert.deepEqual(second.steps, [])
  const missing = await failure({ runtime: 'base', packages: ['islet-has-no-such-package'] })
  assert.equal(missing.details?.reason, 'not_found', missing.message)
  assert.match(missing.message, /npm .*404/)
  const wrong = await failure({ runtime: 'base', dependencies: ['islet-has-no-such-package'] })
  assert.equal(wrong.details?.reason, 'not_found', wrong.message)
  await deleteAll()
})

test('pip installs packages for everybody', async (t) => {
  const { sandbox } = await created({ runtime: 'base', pip: ['six==1.17.0'] }).catch((error) => {
    if (hasCode(error, 'packages_failed') && error.details?.reason === 'network')
      return { sandbox: undefined }
    throw error
  })
  if (!sandbox) return t.skip('PyPI cannot be reached from a sandbox of this machine')
  assert.equal(await say(sandbox, 'python3 -c "import six; print(six.__version__)"'), '1.17.0')
  await sandbox.kill()
})

test('a runtime of the catalog is made on its first use, and again by a pull', async () => {
  const ready = async () => (await islet.runtimes.list()).filter((each) => each.ready).map(({ name }) => name)
  assert.ok(!(await ready()).includes('bun:1'))
  const files = [{ path: 'index.ts', content: 'const answer: number = 42; console.log("is", answer)' }]
  const options = { runtime: 'bun:1', files }
  const before = installations()
  const [first, second] = await Promise.all([created(options), created(options)])
  assert.equal(installations(), before + 1)
  assert.equal(
    await say(first.sandbox, 'bun run index.ts && bunx --version >/dev/null && node --version | cut -c1'),
    'is 42\nv',
  )
  assert.equal((await second.sandbox.getInfo()).image, (await first.sandbox.getInfo()).image)
  const bun = (await islet.runtimes.list()).find(({ name }) => name === 'bun:1')!
  assert.ok(bun.ready)
  assert.match(bun.versions.bun!, /^1\./)
  assert.deepEqual((await created(options)).steps, [])
  const result = await islet.run(['bun', 'run', 'index.ts'], options)
  assert.equal(result.stdout, 'is 42\n')
  const { runtimes } = await islet.images.build('node:24')
  assert.ok(runtimes.includes('node:24') && runtimes.includes('base'), String(runtimes))
  await failsWith(islet.images.build('python:3.14'), 'bad_request')
  const pulled = await islet.images.pull('bun:1')
  assert.notEqual(pulled.name, bun.image)
  assert.deepEqual(pulled.runtimes, ['bun:1'])
  await deleteAll()
})
