import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Sandbox } from '@islet/contract/client'
import { startTestApi, TEST_KEY, type TestApi, until } from '../../server/test/support/server.ts'
import { islet } from './islet.ts'

const BIN = fileURLToPath(new URL('../bin/islet.js', import.meta.url))

let api: TestApi
let sandbox: Sandbox
let home: string
before(async () => {
  home = mkdtempSync(join(tmpdir(), 'islet-watch-'))
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'box' })
})
after(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(home, { recursive: true })
})

class Watch {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<unknown>
  stdout = ''
  stderr = ''

  private constructor(words: string[]) {
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      ISLET_DATA_DIR: home,
      ISLET_URL: api.url,
      ISLET_API_KEY: TEST_KEY,
    }
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

const watchers = async () => {
  const response = await api.call('GET', `/v1/sandboxes/${sandbox.id}/watchers`)
  return ((await response.json()) as { watchers: unknown[] }).watchers
}

test('watch prints a line for each event until it is interrupted, and leaves no watcher', async () => {
  mkdirSync(join(sandbox.workdir, 'src'))
  const watch = await Watch.start('box', 'src', '--ignore', '*.log', '--ignore', 'node_modules')
  mkdirSync(join(sandbox.workdir, 'src/node_modules'))
  for (const name of ['a.log', 'node_modules/b', 'c\u001b[31m\nd'])
    writeFileSync(join(sandbox.workdir, 'src', name), '')
  const line = `add ${sandbox.workdir}/src/c\\x1b[31m\\x0ad\n`
  await until(() => watch.stdout === line)
  assert.equal((await watchers()).length, 1)
  watch.child.kill('SIGINT')
  assert.equal(await watch.exitCode(), 0, watch.stderr)
  assert.equal(watch.stdout, line)
  assert.deepEqual(await watchers(), [])
})

test('watch --json --content prints what is in files, one object per line', async () => {
  const watch = await Watch.start('box', '--json', '--content')
  writeFileSync(join(sandbox.workdir, 'file'), 'hello')
  await until(() => watch.stdout.includes('"content":"hello"'))
  const lines = watch.stdout.trim().split('\n')
  const changes = lines.map((line) => JSON.parse(line))
  assert.deepEqual(changes.at(-1).path, join(sandbox.workdir, 'file'))
  watch.child.kill('SIGTERM')
  assert.equal(await watch.exitCode(), 0)
})

test('watch ends with the reason when the path goes away, and leaves no watcher', async () => {
  const directory = join(sandbox.workdir, 'doomed')
  mkdirSync(directory)
  const watch = await Watch.start('box', 'doomed')
  rmSync(directory, { recursive: true })
  assert.equal(await watch.exitCode(), 1)
  assert.match(watch.stderr, /doomed is gone.*\nhint: /)
  assert.deepEqual(await watchers(), [])
})

test('watch of nothing is a failure with a hint', async () => {
  const { exitCode, stdout, stderr } = await islet(['watch', 'box', 'missing'], api)
  assert.deepEqual([exitCode, stdout], [1, ''])
  assert.match(stderr, /There is no .*missing.*\nhint: /)
})
