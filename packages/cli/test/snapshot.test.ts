import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startTestApi, type TestApi } from '../../server/src/api/testing.ts'
import { islet, type RunOptions } from './islet.ts'

let api: TestApi
const directory = mkdtempSync(join(tmpdir(), 'islet-snapshot-'))
before(async () => {
  api = await startTestApi()
  await api.createSandbox({ name: 'dev', files: [{ path: 'file', content: 'mine' }] })
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
  assert.match(id, /^snp-[a-z0-9]{20}$/)
  assert.match(await ok(['snapshot', 'ls']), new RegExp(`${id} +v1 +The first +host`))
  assert.equal(await ok(['snapshot', 'ls', '-q']), id)
  assert.equal(JSON.parse(await ok(['snapshot', 'ls', '--json']))[0].description, 'text')
  for (const word of [id, id.slice(0, 9), id.slice(4, 9), 'v1', 'The first'])
    assert.equal(JSON.parse(await ok(['snapshot', 'info', word, '--json'])).id, id)
  assert.match(await ok(['snapshot', 'info', 'v1']), /description +text/)
  const other = await ok(['snapshot', 'create', 'dev'])
  assert.equal(await ok(['snapshot', 'tag', other, 'v1']), other)
  assert.equal(JSON.parse(await ok(['snapshot', 'info', 'v1', '--json'])).id, other)
  assert.equal(await ok(['snapshot', 'untag', 'v1']), other)
  assert.match((await run(['snapshot', 'info', 'v1'])).stderr, /hint: islet snapshot ls/)
  const checkpoint = await ok(['checkpoint', 'create', 'dev', 'one'])
  const third = await ok(['snapshot', 'create', '--checkpoint', checkpoint])
  assert.equal(await ok(['snapshot', 'rm', id, other, third]), [id, other, third].join('\n'))
  assert.match((await run(['snapshot', 'ls'])).stderr, /islet snapshot create/)
  const nothing = await run(['snapshot', 'create'])
  assert.deepEqual([nothing.exitCode, nothing.stdout], [2, ''])
})

test('sandboxes begin with one, and the tree shows what descends from what', async () => {
  const first = await ok(['snapshot', 'create', 'dev', '--tag', 'first'])
  const child = await ok(['create', '--snapshot', 'first'])
  assert.equal(await ok(['exec', child, '--', 'cat', 'file']), 'mine')
  const second = await ok(['snapshot', 'create', child, '--name', 'second'])
  const grandchild = await ok(['create', '--snapshot', second])
  const third = await ok(['snapshot', 'create', grandchild])
  await ok(['snapshot', 'rm', second])
  const fourth = await ok(['snapshot', 'create', child])
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
  for (const ref of [first, third, fourth]) await ok(['snapshot', 'rm', ref])
  for (const id of [child, grandchild]) await ok(['rm', id])
  assert.equal(await ok(['snapshot', 'tree', '--json']), '[]')
})

test('a snapshot goes into a file and comes out of it', async () => {
  await ok(['snapshot', 'create', 'dev', '--tag', 'to-go', '--name', 'To go'])
  const file = join(directory, 'to-go.tar.zst')
  assert.equal(await ok(['snapshot', 'export', 'to-go', file]), file)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const imported = await ok(['snapshot', 'import', file, '--tag', 'back', '--name', 'Back'])
  const sandbox = await ok(['create', '--snapshot', 'back'])
  assert.equal(await ok(['exec', sandbox, '--', 'cat', 'file']), 'mine')
  assert.equal(JSON.parse(await ok(['snapshot', 'info', imported, '--json'])).name, 'Back')

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
  await ok(['snapshot', 'create', 'dev', '--tag', 'complete-me'])
  assert.match(await ok(['__complete', '--', 'snapshot', 'info', 'comp']), /^complete-me\t/)
  assert.equal(await ok(['__complete', '--', 'snapshot', 'import', '']), ':files')
})
