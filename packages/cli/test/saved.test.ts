// Saved states: checkpoints, their patches, forks, snapshots.
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type {
  CheckpointInfo,
  CreateSnapshot,
  PatchInfo,
  PatchRun,
  RestoredSandbox,
  Sandbox,
  SnapshotInfo,
} from '@islet/contract/client'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { islet, type RunOptions } from './islet.ts'

let api: TestApi
let sandbox: Sandbox
const directory = mkdtempSync(join(tmpdir(), 'islet-saved-'))
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'dev', env: { KEPT: 'yes' } })
})
after(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

const run = (...words: string[]) => islet(words, api)
/** The command must succeed. */
const ok = (...words: string[]) => okWith({}, ...words)
const okWith = async (options: RunOptions, ...words: string[]) => {
  const { exitCode, stdout, stderr } = await islet(words, { url: api.url, ...options })
  assert.equal(exitCode, 0, `${words.join(' ')}: ${stderr}`)
  return stdout.replace(/\n$/, '')
}

// Each command takes a while to start, so everything that is not under test is done through the API.
const at = (id: string, rest: string) => `/v1/sandboxes/${id}/${rest}`
const post = async <Result>(path: string, body?: object) =>
  (await (await api.call('POST', path, body)).json()) as Result
const inside = async (id: string, command: string): Promise<string> =>
  (await post<{ stdout: string }>(at(id, 'exec'), { command })).stdout

describe('checkpoint', () => {
  test('create, ls, restore by name, and rm', async () => {
    await inside(sandbox.id, 'echo one > file')
    const made = await run('checkpoint', 'create', 'dev', 'before upgrade')
    assert.deepEqual([made.exitCode, made.stderr], [0, ''])
    const id = made.stdout.trim()
    assert.match(id, /^ckp-/)
    await inside(sandbox.id, 'echo two > file')
    const listed: CheckpointInfo[] = JSON.parse(await ok('checkpoint', 'ls', 'dev', '--json'))
    assert.deepEqual(
      listed.map(({ name, sandboxId, memory }) => [name, sandboxId, memory]),
      [['before upgrade', sandbox.id, false]],
    )
    assert.match(await ok('checkpoint', 'ls', 'dev'), new RegExp(`${id} +before upgrade +`))
    assert.equal(await ok('checkpoint', 'ls', 'dev', '--quiet'), id)
    const restored = await run('restore', 'dev', 'before upgrade')
    assert.deepEqual([restored.stdout, restored.exitCode], ['', 0])
    assert.match(restored.stderr, /is restored to before upgrade/)
    assert.equal(await inside(sandbox.id, 'cat file'), 'one\n')
    assert.equal(await ok('checkpoint', 'rm', 'dev', id.slice(0, 12)), id)
    const empty = await run('checkpoint', 'ls', 'dev')
    assert.deepEqual([empty.stdout, empty.exitCode], ['', 0])
    assert.match(empty.stderr, /has no checkpoints\. islet checkpoint create/)
  })

  test('restore prints which services started', async () => {
    for (const name of ['nap', 'off']) await post(at(sandbox.id, 'services'), { name, start: 'sleep 600' })
    await post(at(sandbox.id, 'services/off/stop'))
    await post(at(sandbox.id, 'checkpoints'), { name: 'serving' })
    for (const name of ['nap', 'off']) await api.call('DELETE', at(sandbox.id, `services/${name}`))
    assert.match(
      await ok('restore', 'dev', 'serving'),
      /^SERVICE +OUTCOME +REASON\nnap +started *\noff +stopped/,
    )
    const json: RestoredSandbox = JSON.parse(await ok('restore', 'dev', 'serving', '--json'))
    assert.deepEqual(json.sandbox.id, sandbox.id)
    assert.deepEqual(
      json.services.map(({ name, outcome }) => [name, outcome]),
      [
        ['nap', 'started'],
        ['off', 'stopped'],
      ],
    )
  })

  test('create --checkpoint starts from a checkpoint, and options override its settings', async () => {
    await inside(sandbox.id, 'echo saved > file')
    const { id } = await post<CheckpointInfo>(at(sandbox.id, 'checkpoints'), { name: 'base' })
    const flags = ['--name', 'copy', '--env', 'MORE=1', '--idle-timeout', '7m']
    const made = await ok('create', '--checkpoint', id, ...flags)
    assert.equal(await inside(made, 'cat file; echo $KEPT $MORE'), 'saved\nyes 1\n')
    const info = (await (await api.call('GET', `/v1/sandboxes/${made}`)).json()) as Sandbox
    assert.deepEqual([info.origin, info.timeouts.idleMs], [{ kind: 'checkpoint', id }, 420_000])
  })

  test('fork makes one copy or several', async () => {
    await inside(sandbox.id, 'echo parent > file')
    const one = await ok('fork', 'dev', '--name', 'child', '--env', 'ROLE=worker')
    assert.equal(await inside(one, 'cat file; echo $KEPT $ROLE'), 'parent\nyes worker\n')
    const { forks, frozenMs } = JSON.parse(await ok('fork', 'dev', '--count', '3', '--json'))
    assert.equal(typeof frozenMs, 'number')
    const ids = forks.map((fork: { ok: true; sandbox: Sandbox }) => fork.sandbox.id)
    assert.equal(new Set([...ids, sandbox.id]).size, 4)
    const bad = await run('fork', 'dev', '--user', 'nobody-of-that-name')
    assert.deepEqual([bad.exitCode, bad.stdout], [1, ''])
    assert.match(bad.stderr, /hint: /)
  })

  test('a failure has a hint, and names are completed', async () => {
    const none = await run('restore', 'dev', 'nothing')
    assert.equal(none.exitCode, 1)
    assert.match(none.stderr, /no checkpoint nothing[\s\S]*hint: islet checkpoint ls/)
    await post(at(sandbox.id, 'checkpoints'), { name: 'twice' })
    const taken = await run('checkpoint', 'create', 'dev', 'twice')
    assert.equal(taken.exitCode, 1)
    assert.match(taken.stderr, /has a checkpoint 'twice' already[\s\S]*hint: /)
    const unknown = await run('create', '--checkpoint', 'ckp-00000000000000000000')
    assert.match(unknown.stderr, /hint: islet checkpoint ls/)
    const gone = await api.createSandbox({ name: 'short' })
    const { id } = await post<CheckpointInfo>(at(gone.id, 'checkpoints'), { name: 'left' })
    await api.call('DELETE', `/v1/sandboxes/${gone.id}`)
    const all = await ok('checkpoint', 'ls')
    assert.match(all, new RegExp(`^ID +SANDBOX +NAME.*\\n${id} +${gone.id} +left `))
    assert.match(all, new RegExp(`^ckp-\\w+ +${sandbox.id} +twice `, 'm'))
    const values = await ok('__complete', '--', 'create', '--checkpoint', 'ckp-')
    assert.match(values, new RegExp(`^${id}\\tleft of ${gone.id}$`, 'm'))
    assert.match(await ok('__complete', '--', 'restore', 'dev', 't'), /^twice\tckp-/)
  })

  test('patch adds, lists and removes patches, and shows their results', async () => {
    const { id } = await post<CheckpointInfo>(at(sandbox.id, 'checkpoints'), { name: 'patched' })
    const patch = (...words: string[]) => ok('checkpoint', 'patch', ...words)
    assert.equal(await patch('ls', id), '')
    const add = (script: string, ...flags: string[]) =>
      okWith({ stdin: script }, 'checkpoint', 'patch', 'add', id, '-', ...flags)
    const first = await add('echo 1 >> log', '-d', 'log it')
    assert.match(first, /^pat-/)
    const second = JSON.parse(await add('echo no; exit 4', '--json')) as PatchInfo
    assert.match(await patch('ls', id), /^ID +SIZE +AGE +DESCRIPTION\npat-\w+ +13 B +\w+ +log it\npat-/)
    assert.equal(await patch('ls', id, '-q'), `${first}\n${second.id}`)
    await post(`/v1/checkpoints/${id}/sandboxes`, { name: 'made' })
    assert.match(
      await patch('runs', 'made'),
      /^PATCH +STATUS +AGE +REASON\npat-\w+ +applied \(0\) .*\npat-\w+ +failed \(4\) .* no$/,
    )
    const runs = JSON.parse(await patch('runs', 'made', '--json')) as PatchRun[]
    assert.equal(runs[1]!.output, 'no\n')
    assert.equal(await patch('rm', id, first, second.id), `${first}\n${second.id}`)
    const gone = await run('checkpoint', 'patch', 'rm', id, first)
    assert.equal(gone.exitCode, 1)
    assert.match(gone.stderr, /no such patch/)
    assert.equal((await run('checkpoint', 'patch', 'add', id, '-')).exitCode, 1)
    const missing = await run('checkpoint', 'patch', 'add', id, './not-there.sh')
    assert.equal(missing.exitCode, 1)
    assert.match(missing.stderr, /not-there.sh/)
  })
})

describe('snapshot', () => {
  const info = async (ref: string) =>
    (await (await api.call('GET', `/v1/snapshots/${ref}`)).json()) as SnapshotInfo
  const made = async (body: CreateSnapshot) => (await post<SnapshotInfo>('/v1/snapshots', body)).id

  test('create, ls, info, tag, untag, rm', async () => {
    const flags = ['--tag', 'v1', '--name', 'The first', '--description', 'text']
    const id = await ok('snapshot', 'create', 'dev', ...flags)
    assert.equal((await info('v1')).description, 'text')
    assert.match(await ok('snapshot', 'ls'), new RegExp(`${id} +v1 +The first +host`))
    assert.match(await ok('__complete', '--', 'snapshot', 'info', 'v'), /^v1\t/)
    assert.equal(JSON.parse(await ok('snapshot', 'info', id.slice(4, 9), '--json')).id, id)
    assert.match(await ok('snapshot', 'info', 'The first'), /description +text/)
    const other = await made({ sandbox: sandbox.id })
    assert.equal(await ok('snapshot', 'tag', other, 'v1'), other)
    assert.equal((await info('v1')).id, other)
    assert.equal(await ok('snapshot', 'untag', 'v1'), other)
    assert.match((await run('snapshot', 'info', 'v1')).stderr, /hint: islet snapshot ls/)
    const checkpoint = await post<CheckpointInfo>(at(sandbox.id, 'checkpoints'), { name: 'one' })
    const third = await ok('snapshot', 'create', '--checkpoint', checkpoint.id)
    assert.equal(await ok('snapshot', 'rm', id, other, third), [id, other, third].join('\n'))
  })

  test('sandboxes start from a snapshot, and tree shows the descendants', async () => {
    await inside(sandbox.id, 'printf mine > file')
    const first = await made({ sandbox: sandbox.id, tag: 'first' })
    const child = await ok('create', '--snapshot', 'first')
    assert.equal(await inside(child, 'cat file'), 'mine')
    const second = await made({ sandbox: child, name: 'second' })
    const { id: grandchild } = await api.createSandbox({ snapshot: second })
    const third = await made({ sandbox: grandchild })
    await api.call('DELETE', `/v1/snapshots/${second}`)
    const fourth = await made({ sandbox: child })
    const [one, two, three, four, ...more] = (await ok('snapshot', 'tree')).split('\n')
    assert.match(one!, new RegExp(`^${first}  first`))
    assert.match(two!, new RegExp(`^├─ ${second}  second  \\(deleted\\)`))
    assert.match(three!, new RegExp(`^│  └─ ${third}`))
    assert.match(four!, new RegExp(`^└─ ${fourth}`))
    assert.deepEqual(more, [])
    const line = (await ok('snapshot', 'tree', third)).split('\n')
    assert.deepEqual(
      line.map((text) => /snp-\w+/.exec(text)![0]),
      [first, second, third],
    )
    const [top] = JSON.parse(await ok('snapshot', 'tree', 'first', '--json'))
    assert.deepEqual(
      top.children.map(({ id }: { id: string }) => id),
      [second, fourth],
    )
    for (const ref of [first, third, fourth]) await api.call('DELETE', `/v1/snapshots/${ref}`)
    assert.match((await run('snapshot', 'ls')).stderr, /islet snapshot create/)
  })

  test('export writes a file that import reads; both clear their progress line', async () => {
    await inside(sandbox.id, 'printf mine > file')
    await made({ sandbox: sandbox.id, tag: 'to-go', name: 'To go' })
    const file = join(directory, 'to-go.tar.zst')
    assert.equal(await inTerminal('snapshot', 'export', 'to-go', file), file)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    // The magic number of zstd.
    assert.equal(readFileSync(file).readUInt32LE(), 0xfd2fb528)
    const imported = await inTerminal('snapshot', 'import', file, '--tag', 'back', '--name', 'Back')
    assert.match(imported, /^snp-\w+$/)
    assert.equal((await info(imported)).name, 'Back')
    assert.equal(await ok('run', '--snapshot', 'back', '--', 'cat', 'file'), 'mine')

    const missing = await run('snapshot', 'import', join(directory, 'none'))
    assert.deepEqual([missing.exitCode, missing.stdout], [1, ''])
    assert.match(missing.stderr, /hint: /)
    const words = ['snapshot', 'import', '-', '--json']
    const damaged = await islet(words, { url: api.url, stdin: 'nonsense' })
    assert.equal(JSON.parse(damaged.stderr).error.code, 'snapshot_damaged')
    assert.equal((await run('snapshot', 'export', 'none', join(directory, 'none'))).exitCode, 1)
    assert.deepEqual(readdirSync(directory), ['to-go.tar.zst'])
  })

  test('image import clears its progress line', async () => {
    const rootfs = join(directory, 'rootfs')
    mkdirSync(join(rootfs, 'bin'), { recursive: true })
    copyFileSync('/bin/sh', join(rootfs, 'bin/sh'))
    assert.match(await inTerminal('image', 'import', rootfs, '--name', 'shown'), /^\S+$/)
  })
})

/** Runs a command that shows progress. Returns the final content of the terminal. */
async function inTerminal(...words: string[]): Promise<string> {
  const { stdout, exitCode } = await islet(words, { url: api.url, terminal: true })
  assert.equal(exitCode, 0, stdout)
  assert.ok(stdout.includes('\r\x1b[K'), 'progress was shown')
  const lines = stdout.split('\r\n').map((line) => line.split('\r\x1b[K').at(-1)!)
  assert.equal(lines.at(-1), '')
  return lines.slice(0, -1).join('\n')
}
