// Files of a sandbox: .env files, signed URLs, overlays, watchers.
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { OverlayInfo, Sandbox } from '@islet/contract/client'
import { startTestApi, type TestApi, until } from '../../server/test/support/server.ts'
import { BIN, environment, islet } from './islet.ts'

let api: TestApi
let sandbox: Sandbox
const directory = mkdtempSync(join(tmpdir(), 'islet-files-'))
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'box' })
})
after(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

/** The command must succeed. */
async function stdoutOf(...words: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await islet(words, api)
  assert.equal(exitCode, 0, `${words.join(' ')}: ${stderr}`)
  return stdout
}

test('env sets, lists and removes variables of a file', async () => {
  assert.equal(await stdoutOf('env', 'set', 'box', 'PORT=3000', 'GREETING=hello = world'), 'PORT\nGREETING\n')
  assert.equal(await stdoutOf('env', 'ls', 'box'), 'PORT=3000\nGREETING=hello = world\n')
  assert.equal(await stdoutOf('env', 'rm', 'box', 'PORT', 'OTHER'), 'PORT\n')
  assert.deepEqual(JSON.parse(await stdoutOf('env', 'ls', '--json', 'box')), { GREETING: 'hello = world' })
  await stdoutOf('env', 'set', 'box', '-f', 'config/.env.test', 'A=')
  assert.equal(await stdoutOf('env', 'ls', 'box', '--file', 'config/.env.test'), 'A=\n')
  const missing = await islet(['env', 'ls', 'box', '-f', 'none'], api)
  assert.equal(missing.exitCode, 1)
  assert.match(missing.stderr, /none.*\nhint: /)
})

test('exec first copies files and directories, below the directory of the command', async () => {
  mkdirSync(join(directory, 'code'))
  writeFileSync(join(directory, 'code/lib.sh'), 'echo lib')
  writeFileSync(join(directory, 'main.sh'), '#!/bin/sh\n. ./code/lib.sh; cat; echo main', { mode: 0o755 })
  const at = (name: string) => join(directory, name)
  const files = ['--file', `${at('main.sh')}:main.sh`, '--file', `${at('code')}:code`]
  await stdoutOf('exec', 'box', '--', 'mkdir', 'work')
  const words = ['exec', '--cwd', 'work', ...files, 'box', './main.sh']
  const ran = await islet(words, { ...api, stdin: 'typed\n' })
  assert.equal(ran.stdout, 'lib\ntyped\nmain\n', ran.stderr)
  const id = (await stdoutOf('exec', '-d', '--file', `${at('main.sh')}:once.sh`, 'box', './once.sh')).trim()
  assert.match(id, /^prc-/)
  const none = await islet(['exec', '--file', `${at('none')}:x`, 'box', 'true'], api)
  assert.deepEqual([none.exitCode, none.stdout], [125, ''])
  assert.match(none.stderr, /none cannot be read/)
})

test('env set takes values from the environment and from a file, so that a secret is in no argument', async () => {
  writeFileSync(join(directory, 'local'), 'FROM_FILE=1\nSECRET=overridden\n')
  const words = ['env', 'set', 'box', '-f', 'mixed', '--env-file', 'local', 'SECRET']
  const options = { ...api, env: { SECRET: 'hush' }, cwd: directory }
  const { exitCode, stdout, stderr } = await islet(words, options)
  assert.equal(exitCode, 0, stderr)
  assert.ok(!`${stdout}${stderr}`.includes('hush'))
  assert.equal(await stdoutOf('env', 'ls', 'box', '-f', 'mixed'), 'FROM_FILE=1\nSECRET=hush\n')
})

test('url prints URLs that download and upload a file', async () => {
  const upload = (await stdoutOf('url', 'box', 'sent', '--upload', '--expires', '10m')).trim()
  assert.equal((await fetch(upload, { method: 'PUT', body: 'content' })).status, 200)
  const { url, method } = JSON.parse(await stdoutOf('url', '--json', 'box', 'sent'))
  assert.equal(await (await fetch(url)).text(), 'content')
  assert.equal(method, 'GET')
})

test('overlay copies a template, lists it and removes the copy', async () => {
  const template = `${sandbox.workdir}/template`
  for (const path of ['node_modules', 'src']) mkdirSync(join(template, path), { recursive: true })
  for (const path of ['src/a', 'b.log']) writeFileSync(join(template, path), '')
  const words = ['overlay', 'create', 'box', template, 'app', '--ignore', '*.log', '--ignore', 'none']
  const { stdout, stderr, exitCode } = await islet(words, api)
  assert.equal(exitCode, 0, stderr)
  const id = stdout.trim()
  assert.match(stderr, /^1 files and 1 directories copied, 1 linked, 1 left out\.\n$/)
  const [listed] = JSON.parse(await stdoutOf('overlay', 'ls', 'box', '--json')) as OverlayInfo[]
  assert.deepEqual([listed?.id, listed?.copyStatus], [id, 'complete'])
  assert.match(await stdoutOf('overlay', 'ls', 'box'), new RegExp(`\\n${id} +complete +smart +1 +1 `))
  assert.equal(await stdoutOf('overlay', 'rm', 'box', id), `${id}\n`)
  assert.equal(await stdoutOf('exec', '-n', 'box', 'ls -d app 2>/dev/null || true'), '')
  mkdirSync(join(sandbox.workdir, 'clash/src/a'), { recursive: true })
  const failed = await islet(['overlay', 'create', 'box', template, 'clash'], api)
  assert.equal(failed.exitCode, 1)
  assert.match(failed.stderr, /hint: islet overlay rm/)
})

describe('watch', () => {
  test('prints a line for each event until it is interrupted, and leaves no watcher', async () => {
    mkdirSync(join(sandbox.workdir, 'watched'))
    const watch = await Watch.start('box', 'watched', '--ignore', '*.log', '--ignore', 'node_modules')
    mkdirSync(join(sandbox.workdir, 'watched/node_modules'))
    for (const name of ['a.log', 'node_modules/b', 'c\u001b[31m\nd'])
      writeFileSync(join(sandbox.workdir, 'watched', name), '')
    const line = `add ${sandbox.workdir}/watched/c\\x1b[31m\\x0ad\n`
    await until(() => watch.stdout === line)
    assert.equal((await watchers()).length, 1)
    watch.child.kill('SIGINT')
    assert.equal(await watch.exitCode(), 0, watch.stderr)
    assert.equal(watch.stdout, line)
    assert.deepEqual(await watchers(), [])
  })

  test('--json --content prints the content of files, one object per line', async () => {
    const watch = await Watch.start('box', '--json', '--content')
    writeFileSync(join(sandbox.workdir, 'file'), 'hello')
    await until(() => watch.stdout.includes('"content":"hello"'))
    const lines = watch.stdout.trim().split('\n')
    const changes = lines.map((line) => JSON.parse(line))
    assert.deepEqual(changes.at(-1).path, join(sandbox.workdir, 'file'))
    watch.child.kill('SIGTERM')
    assert.equal(await watch.exitCode(), 0)
  })

  test('ends with the reason when the path is removed, and leaves no watcher', async () => {
    const path = join(sandbox.workdir, 'doomed')
    mkdirSync(path)
    const watch = await Watch.start('box', 'doomed')
    rmSync(path, { recursive: true })
    assert.equal(await watch.exitCode(), 1)
    assert.match(watch.stderr, /doomed is gone.*\nhint: /)
    assert.deepEqual(await watchers(), [])
  })

  test('of a missing path fails with a hint', async () => {
    const { exitCode, stdout, stderr } = await islet(['watch', 'box', 'missing'], api)
    assert.deepEqual([exitCode, stdout], [1, ''])
    assert.match(stderr, /There is no .*missing.*\nhint: /)
  })
})

class Watch {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<unknown>
  stdout = ''
  stderr = ''

  private constructor(words: string[]) {
    const env = environment(directory, api.url)
    this.child = spawn(process.execPath, [BIN, 'watch', ...words], { env })
    after(() => this.child.kill('SIGKILL'))
    this.ended = once(this.child, 'close')
    this.child.stdout.on('data', (bytes) => {
      this.stdout += bytes
    })
    this.child.stderr.on('data', (bytes) => {
      this.stderr += bytes
    })
  }

  static async start(...words: string[]): Promise<Watch> {
    const watch = new Watch(words)
    await until(() => watch.stderr.includes('Watching') || watch.child.exitCode !== null)
    assert.equal(watch.child.exitCode, null, watch.stderr)
    return watch
  }

  async exitCode(): Promise<number | null> {
    await this.ended
    return this.child.exitCode
  }
}

async function watchers(): Promise<unknown[]> {
  const response = await api.call('GET', `/v1/sandboxes/${sandbox.id}/watchers`)
  return ((await response.json()) as { watchers: unknown[] }).watchers
}
