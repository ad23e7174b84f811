import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  type CheckpointInfo,
  type CheckpointPage,
  type CreatedSandbox,
  newId,
  type Pruned,
} from '@islet/contract'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

let api: TestApi
before(async () => {
  api = await startTestApi({ importDirs: tmpdir() })
})
after(() => api[Symbol.asyncDispose]())

async function made<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await api.call(method, path, body)
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`)
  return (await response.json()) as T
}

const prune = (body: object = {}) => made<Pruned>('POST', '/v1/prune', body)
const checkpoint = async (id: string, name: string) =>
  (await made<CheckpointInfo>('POST', `/v1/sandboxes/${id}/checkpoints`, { name })).id
const stop = (id: string) => made('DELETE', `/v1/sandboxes/${id}`)
const statusOf = async (path: string) => (await api.call('GET', path)).status
const checkpoints = async () =>
  (await made<CheckpointPage>('GET', '/v1/checkpoints')).checkpoints.map(({ id }) => id).sort()

/** An image that lost its name to a later one. */
async function unnamedImage(): Promise<string> {
  const root = join(api.dataDir, 'rootfs')
  mkdirSync(join(root, 'bin'), { recursive: true })
  copyFileSync('/bin/sh', join(root, 'bin/sh'))
  const names: string[] = []
  for (const content of ['one', 'two']) {
    writeFileSync(join(root, 'content'), content)
    const body = { kind: 'directory', path: root, name: 'mine' }
    const text = await (await api.call('POST', '/v1/images/import', body)).text()
    names.push(JSON.parse(text.trim().split('\n').at(-1)!).image.name)
  }
  return names[0]!
}

test('what nothing uses is shown, then removed, and what something stands on stays', async () => {
  const image = await unnamedImage()
  const [alive, left, bare, source] = await Promise.all(
    ['alive', 'left', 'bare', 'source'].map((name) =>
      api.createSandbox({ name, files: [{ path: 'f', content: name }] }),
    ),
  )
  const kept = await checkpoint(alive!.id, 'of one that is there')
  const loose = await checkpoint(left!.id, 'of one that is gone')
  const base = await checkpoint(source!.id, 'that another was made from')
  const copy = await made<CreatedSandbox>('POST', `/v1/checkpoints/${base}/sandboxes`, {})
  const { id: process } = await api.start(alive!.id, { command: 'echo kept' })
  for (const { id } of [left!, bare!, source!]) await stop(id)
  const orphan = join(api.dataDir, 'output', newId('sandbox'))
  mkdirSync(orphan, { recursive: true })
  writeFileSync(join(orphan, 'prc.log'), 'x'.repeat(10_000))

  assert.deepEqual((await prune({ dryRun: true, olderThan: '1h', checkpoints: true })).sandboxes, [])
  const shown = await prune({ dryRun: true })
  assert.deepEqual(
    [shown.dryRun, shown.images.map(({ name }) => name), shown.checkpoints, shown.sandboxes],
    [true, [image], [], [bare!.id]],
  )
  assert.ok(shown.freedBytes > 10_000)
  assert.equal(await statusOf(`/v1/sandboxes/${bare!.id}`), 200)
  assert.ok(existsSync(orphan))

  const [first, second] = await Promise.all([prune(), prune()])
  assert.deepEqual(
    [...first!.images, ...second!.images].map(({ name }) => name),
    [image],
  )
  assert.equal(await statusOf(`/v1/sandboxes/${bare!.id}`), 404)
  assert.ok(!existsSync(orphan))
  assert.deepEqual(await checkpoints(), [base, kept, loose].sort())
  assert.equal(await statusOf(`/v1/sandboxes/${left!.id}`), 200, 'a record stays while a checkpoint is of it')

  const wanted = await prune({ dryRun: true, checkpoints: true })
  const removed = await prune({ checkpoints: true })
  assert.deepEqual(removed, { ...wanted, dryRun: false })
  assert.deepEqual(
    [removed.checkpoints.map(({ id }) => id), removed.sandboxes, removed.images],
    [[loose], [left!.id], []],
  )
  assert.deepEqual(await checkpoints(), [base, kept].sort())
  for (const { id } of [alive!, copy]) {
    const { stdout } = await made<{ stdout: string }>('POST', `/v1/sandboxes/${id}/exec`, {
      command: 'cat f',
    })
    assert.equal(stdout, id === copy.id ? 'source' : 'alive')
  }
  const { stdout } = await made<{ stdout: string }>(
    'GET',
    `/v1/sandboxes/${alive!.id}/processes/${process}/output`,
  )
  assert.equal(stdout, 'kept\n')
  assert.deepEqual(await prune(), {
    dryRun: false,
    images: [],
    checkpoints: [],
    sandboxes: [],
    freedBytes: 0,
  })
})

test('pruning wants the key, and options that it knows', async () => {
  const { id, token } = await api.createSandbox()
  const headers = { Authorization: `Bearer ${token}` }
  assert.equal((await errorOf(await api.call('POST', '/v1/prune', {}, { headers }))).code, 'forbidden')
  for (const body of [{ all: true }, { olderThan: 'old' }, { dryRun: 'yes' }]) {
    assert.equal((await errorOf(await api.call('POST', '/v1/prune', body))).code, 'bad_request')
  }
  await stop(id)
})
