// Files that are part of a create or of the start of a command.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { LIMITS } from '@islet/contract/client'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { type Content, type FileToWrite, hasCode, Islet, type Sandbox } from '../src/index.ts'
import { startProxy } from './proxy.ts'

let api: TestApi
let islet: Islet
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  islet = new Islet({ url: api.url, apiKey: TEST_KEY })
  sandbox = await islet.sandboxes.create()
})
after(() => api[Symbol.asyncDispose]())

const BYTES = Uint8Array.from([0, 255, 104, 105])
/** All forms of the same bytes; streams are made anew, because they can be read once. */
const forms = (): [name: string, content: Content, encoding?: 'base64'][] => [
  ['text', '\0\u00ffhi'],
  ['base64', 'AP9oaQ==', 'base64'],
  ['bytes', BYTES],
  ['buffer', Buffer.from(BYTES)],
  ['part', new Uint8Array([1, ...BYTES, 1]).subarray(1, 5)],
  ['array-buffer', BYTES.buffer as ArrayBuffer],
  ['blob', new Blob([BYTES])],
  ['web', new Blob([BYTES]).stream()],
  ['readable', Readable.from([BYTES.subarray(0, 1), BYTES.subarray(1)])],
  [
    'generator',
    (async function* () {
      yield BYTES
    })(),
  ],
]
const filesOf = (prefix = ''): FileToWrite[] =>
  forms().map(([name, content, encoding]) => ({ path: `${prefix}${name}`, content, encoding }))
const COUNT = `for file in *; do printf '%s ' "$file"; od -An -tx1 "$file"; done`
const expected = forms()
  .map(([name]) => (name === 'text' ? `${name}  00 c3 bf 68 69\n` : `${name}  00 ff 68 69\n`))
  .sort()
  .join('')

test('every kind of content arrives with a create, a run, an exec and the start of a process', async () => {
  await using made = await islet.sandboxes.create({ files: filesOf('made/') })
  assert.equal((await made.exec.run(COUNT, { cwd: 'made' })).stdout, expected)
  const { stdout } = await islet.run(`cd once && ${COUNT}`, { files: filesOf('once/') })
  assert.equal(stdout, expected)
  // Relative to the directory of the command, which is made.
  assert.equal((await sandbox.exec.run(COUNT, { cwd: 'exec', files: filesOf() })).stdout, expected)
  let printed = ''
  const session = await sandbox.exec.start(COUNT, {
    cwd: 'start',
    files: filesOf(),
    onStdout: (bytes) => {
      printed += Buffer.from(bytes).toString()
    },
  })
  assert.equal(await session.done, 0)
  assert.equal(printed, expected)
  const { id } = await sandbox.exec.spawn(['sh', './main'], {
    files: [{ path: 'main', content: 'echo spawned' }],
  })
  await api.call('GET', `/v1/sandboxes/${sandbox.id}/processes/${id}?wait=60000`)
  assert.equal((await sandbox.exec.output(id)).stdout, 'spawned\n')
  await using reused = await islet.sandboxes.getOrCreate('reused', { files: filesOf('made/') })
  assert.equal((await reused.exec.run(COUNT, { cwd: 'made' })).stdout, expected)
})

test('a fork and a sandbox from a checkpoint get files as well', async () => {
  const { id } = await sandbox.createCheckpoint('base')
  await using copy = await islet.checkpoints.createSandbox(id, { files: filesOf('given/') })
  assert.equal((await copy.exec.run(COUNT, { cwd: 'given' })).stdout, expected)
  // More than fits into the body of an ordinary call.
  const large = { path: 'large', content: Buffer.alloc(4_000_000, 1) }
  await using fork = await sandbox.fork({ files: [...filesOf('given/'), large] })
  assert.equal((await fork.exec.run(COUNT, { cwd: 'given' })).stdout, expected)
  assert.equal((await fork.files.stat('large')).sizeBytes, 4_000_000)
})

test('a file has a mode and an owner, replaces what was there, and may have an absolute path', async () => {
  await sandbox.files.write('tool', 'old')
  const path = `${(await sandbox.getInfo()).workdir}/tool`
  const files = [{ path, content: '#!/bin/sh\necho new', mode: 0o750, owner: '33:44' }]
  const { stdout } = await sandbox.exec.run('./tool; stat -c "%a %u %g" tool', { files })
  assert.equal(stdout, 'new\n750 33 44\n')
})

test('if a file cannot be written, the error names it and no command is started', async () => {
  await sandbox.files.write('plain', '')
  const before = (await sandbox.exec.list()).length
  const files = [
    { path: 'first', content: '1' },
    { path: 'plain/second', content: '2' },
    { path: 'third', content: '3' },
  ]
  for (const call of ['run', 'spawn'] as const)
    await assert.rejects(sandbox.exec[call]('echo', { files }), (error) => {
      assert.ok(hasCode(error, 'not_a_directory'))
      assert.match(error.message, /plain/)
      return true
    })
  assert.equal((await sandbox.exec.list()).length, before)
  assert.deepEqual([await sandbox.files.exists('first'), await sandbox.files.exists('third')], [true, false])
  const sandboxes = (await islet.sandboxes.list()).total
  await assert.rejects(islet.sandboxes.create({ files: [{ path: '/dev/null/x', content: '' }] }), (error) =>
    hasCode(error, 'not_a_directory'),
  )
  assert.equal((await islet.sandboxes.list()).total, sandboxes)
})

test('eight mebibytes go with a call, and a byte more is refused before anything is sent', async () => {
  const half = LIMITS.givenFilesBytes / 2
  // Text whose JSON is much longer than the text.
  const files = (more: number) => [
    { path: 'escapes', content: '\u0001'.repeat(half) },
    { path: 'rest', content: Readable.from([Buffer.alloc(half), Buffer.alloc(more)]) },
  ]
  const { stdout } = await sandbox.exec.run('wc -c < escapes; wc -c < rest', { files: files(0) })
  assert.equal(stdout, `${half}\n${half}\n`)
  const before = (await islet.sandboxes.list()).total
  const endless = { cancelled: false }
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(100_000)),
    cancel: () => {
      endless.cancelled = true
    },
  })
  const tooMuch = [
    files(1),
    [{ path: 'rest', content: stream }],
    [{ path: 'rest', content: new Blob([new Uint8Array(2 * half + 1)]) }],
    [{ path: 'rest', content: 'x'.repeat(2 * half + 1) }],
  ]
  for (const given of tooMuch)
    await assert.rejects(islet.sandboxes.create({ files: given }), (error) => {
      assert.ok(hasCode(error, 'bad_request'))
      assert.match(error.message, /rest/)
      assert.match(error.hint!, /files\.write/)
      return true
    })
  assert.ok(endless.cancelled)
  assert.equal((await islet.sandboxes.list()).total, before)
})

test('what is no content is refused, and the error of a stream is the error of the call', async () => {
  const refused = (content: unknown, encoding?: 'base64') =>
    assert.rejects(
      sandbox.exec.run('true', { files: [{ path: 'odd', content: content as Content, encoding }] }),
      (error) => hasCode(error, 'bad_request') && /odd|files/.test(error.message),
    )
  for (const content of [undefined, null, 7, {}, ['text'], Readable.from([7])]) await refused(content)
  await refused(BYTES, 'base64')
  await refused('not base64!', 'base64')
  const broken = new Readable({
    read() {
      this.destroy(new Error('the source broke'))
    },
  })
  const files = [{ path: 'broken', content: broken }]
  await assert.rejects(sandbox.exec.run('true', { files }), { message: 'the source broke' })
})

test('an aborted call stops reading a stream', async () => {
  const abort = new AbortController()
  const waiting = new Readable({ read() {} })
  const files = [{ path: 'a', content: waiting }]
  const calls = [
    sandbox.exec.run('true', { files, signal: abort.signal }),
    islet.sandboxes.create({ files: [{ path: 'a', content: new ReadableStream() }], signal: abort.signal }),
  ]
  setImmediate(() => abort.abort())
  for (const call of calls) await assert.rejects(call, { name: 'AbortError' })
  assert.ok(waiting.destroyed)
})

test('a create whose answer is lost is sent again, with the content of its streams', async () => {
  await using proxy = await startProxy(api.url, (_, count) => (count === 1 ? { cut: 'answer' } : undefined))
  const through = new Islet({ url: proxy.url, apiKey: TEST_KEY })
  await using made = await through.sandboxes.create({ files: filesOf('made/') })
  assert.equal((await made.exec.run(COUNT, { cwd: 'made' })).stdout, expected)
})
