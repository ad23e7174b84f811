import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { CreateSnapshot, SnapshotInfo } from '@islet/contract/client'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { islet, type RunOptions } from './islet.ts'

let api: TestApi
let dev: string
const directory = mkdtempSync(join(tmpdir(), 'islet-snapshot-'))
before(async () => {
  api = await startTestApi()
  dev = (await api.createSandbox({ name: 'dev', files: [{ path: 'file', content: 'mine' }] })).id
})
after(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

const run = (words: string[], options: RunOptions = {}) => islet(words, { url: api.url, ...options })
const ok = async (words: string[], options: RunOptions = {}) => {
  const { exitCode, stdout, stderr } = await run(words, options)
  assert.equal(exitCode, 0, `${words.join(' ')}: ${stderr}`)
  return stdout.replace(/\n$/, '')
}

// Each command takes a while to start, so what is not about the command is done through the API.
const info = async (ref: string) =>
  (await (await api.call('GET', `/v1/snapshots/${ref}`)).json()) as SnapshotInfo
const made = async (body: CreateSnapshot) =>
  ((await (await api.call('POST', '/v1/snapshots', body)).json()) as SnapshotInfo).id

test('a snapshot is made, listed, tagged, shown and deleted', async () => {
  const id = await ok([
    'snapshot',
    'create',
    'dev',
    '--tag',
    'v1',
    '--name',
    'The first',
    '--description',
    'text',
  ])
  assert.equal((await info('v1')).description, 'text')
  assert.match(await ok(['snapshot', 'ls']), new RegExp(`${id} +v1 +The first +host`))
  assert.equal(JSON.parse(await ok(['snapshot', 'info', id.slice(4, 9), '--json'])).id, id)
  assert.match(await ok(['snapshot', 'info', 'The first']), /description +text/)
  const other = await made({ sandbox: dev })
  assert.equal(await ok(['snapshot', 'tag', other, 'v1']), other)
  assert.equal((await info('v1')).id, other)
  assert.equal(await ok(['snapshot', 'untag', 'v1']), other)
  assert.match((await run(['snapshot', 'info', 'v1'])).stderr, /hint: islet snapshot ls/)
  const checkpoint = await ok(['checkpoint', 'create', 'dev', 'one'])
  const third = await ok(['snapshot', 'create', '--checkpoint', checkpoint])
  assert.equal(await ok(['snapshot', 'rm', id, other, third]), [id, other, third].join('\n'))
  const nothing = await run(['snapshot', 'create'])
  assert.deepEqual([nothing.exitCode, nothing.stdout], [2, ''])
})

test('sandboxes begin with one, and the tree shows what descends from what', async () => {
  const first = await made({ sandbox: dev, tag: 'first' })
  const child = await ok(['create', '--snapshot', 'first'])
  assert.equal(await ok(['run', '--snapshot', 'first', '--', 'cat', 'file']), 'mine')
  const second = await made({ sandbox: child, name: 'second' })
  const { id: grandchild } = await api.createSandbox({ snapshot: second })
  const third = await made({ sandbox: grandchild })
  await api.call('DELETE', `/v1/snapshots/${second}`)
  const fourth = await made({ sandbox: child })
  const [one, two, three, four, ...more] = (await ok(['snapshot', 'tree'])).split('\n')
  assert.match(one!, new RegExp(`^${first}  first`))
  assert.match(two!, new RegExp(`^├─ ${second}  second  \\(deleted\\)`))
  assert.match(three!, new RegExp(`^│  └─ ${third}`))
  assert.match(four!, new RegExp(`^└─ ${fourth}`))
  assert.deepEqual(more, [])
  const line = (await ok(['snapshot', 'tree', third])).split('\n')
  assert.deepEqual(
    line.map((text) => /snp-\w+/.exec(text)![0]),
    [first, second, third],
  )
  const [top] = JSON.parse(await ok(['snapshot', 'tree', 'first', '--json']))
  assert.deepEqual(
    top.children.map(({ id }: { id: string }) => id),
    [second, fourth],
  )
  assert.match(
    (await run(['create', '--snapshot', 'first', '--runtime', 'host'])).stderr,
    /cannot be used with/,
  )
  for (const ref of [first, third, fourth]) await api.call('DELETE', `/v1/snapshots/${ref}`)
  assert.match((await run(['snapshot', 'ls'])).stderr, /islet snapshot create/)
})

test('a snapshot goes into a file and comes out of it', async () => {
  await made({ sandbox: dev, tag: 'to-go', name: 'To go' })
  const file = join(directory, 'to-go.tar.zst')
  assert.equal(await ok(['snapshot', 'export', 'to-go', file]), file)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const imported = await ok(['snapshot', 'import', file, '--tag', 'back', '--name', 'Back'])
  assert.equal(await ok(['run', '--snapshot', 'back', '--', 'cat', 'file']), 'mine')
  assert.equal((await info(imported)).name, 'Back')

  const missing = await run(['snapshot', 'import', join(directory, 'none')])
  assert.deepEqual([missing.exitCode, missing.stdout], [1, ''])
  assert.match(missing.stderr, /hint: /)
  const damaged = await run(['snapshot', 'import', '-', '--json'], { stdin: 'nonsense' })
  assert.equal(JSON.parse(damaged.stderr).error.code, 'snapshot_damaged')
  assert.equal((await run(['snapshot', 'export', 'none', join(directory, 'none')])).exitCode, 1)
  assert.deepEqual(readdirSync(directory), ['to-go.tar.zst'])
  // zstd begins so.
  assert.equal(readFileSync(file).readUInt32LE(), 0xfd2fb528)
})

test('snapshots are completed', async () => {
  await made({ sandbox: dev, tag: 'complete-me' })
  assert.match(await ok(['__complete', '--', 'snapshot', 'info', 'comp']), /^complete-me\t/)
  assert.equal(await ok(['__complete', '--', 'snapshot', 'import', '']), ':files')
})

test('the line that shows progress is cleared before the result is printed', async () => {
  const id = await made({ sandbox: dev })
  const path = join(directory, 'shown.tar.zst')
  const rootfs = join(directory, 'rootfs')
  mkdirSync(join(rootfs, 'bin'), { recursive: true })
  copyFileSync('/bin/sh', join(rootfs, 'bin/sh'))
  for (const [words, result] of [
    [['snapshot', 'export', id, path], path],
    [['snapshot', 'import', path, '--name', 'shown'], /snp-\w+/],
    [['image', 'import', rootfs, '--name', 'shown'], /\S+/],
  ] as const) {
    const { stdout, exitCode } = await run([...words], { terminal: true })
    assert.equal(exitCode, 0, stdout)
    // What a terminal shows of a line is what follows the last time it was cleared.
    const lines = stdout.split('\r\n').map((line) => line.split('\r\x1b[K').at(-1)!)
    assert.ok(stdout.includes('\r\x1b[K'), 'progress was shown')
    assert.match(lines.join('\n'), new RegExp(`^${typeof result === 'string' ? result : result.source}\n$`))
  }
})
