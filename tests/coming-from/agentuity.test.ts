// Checks docs/coming-from/agentuity.md row by row, through our SDK.
import assert from 'node:assert/strict'
import { Islet } from 'islet'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'
import { testRows } from './rows.ts'
import { until } from './until.ts'

const { server, islet } = await startSuite()
const create = (options = {}) => islet.sandboxes.create({ runtime: 'host', ...options })
const sandbox = await create({ env: { GREETING: 'hello' } })
const { exec, files } = sandbox
const job = await exec.spawn(['sleep', '600'])
const checkpoint = await sandbox.createCheckpoint('base')

testRows('agentuity.md', {
  'new SandboxClient(options)': async () => {
    const other = new Islet({ url: server.url, apiKey: server.key })
    assert.equal((await other.health()).status, 'ok')
  },
  'client.listRuntimes(params)': async () => {
    assert.ok((await islet.runtimes.list()).some(({ name }) => name === 'bun:1'))
  },
  'client.run(options, streams)': async () => {
    let heard = ''
    const options = {
      runtime: 'host',
      timeout: '30s',
      onStdout: (bytes: Uint8Array) => {
        heard += Buffer.from(bytes)
      },
    }
    const { stdout, sandboxId } = await islet.run(['echo', 'ok'], options)
    assert.deepEqual([stdout, heard], ['ok\n', 'ok\n'])
    assert.equal((await islet.sandboxes.get(sandboxId)).status, 'stopped')
  },
  'client.create(options)': async () => {
    const made = await create({ project: 'proj', name: 'one', timeout: { idle: '10m', onIdle: 'kill' } })
    await failsWith(create({ name: 'one' }), 'name_taken')
    assert.equal((await made.getInfo()).project, 'proj')
    await made.kill()
  },
  'client.connect(sandboxId)': async () => {
    assert.equal(await say(await islet.sandboxes.connect(sandbox.id), 'echo $GREETING'), 'hello')
  },
  'client.get(sandboxId)': async () => {
    assert.equal((await islet.sandboxes.get(sandbox.id)).status, 'running')
  },
  'client.list(params)': async () => {
    const { sandboxes, total } = await islet.sandboxes.list({ limit: 1, offset: 0 })
    assert.deepEqual([sandboxes.length, total], [1, 1])
    assert.deepEqual(sandboxes[0]!.awake?.reasons, [{ kind: 'job', id: job.id }])
    await failsWith(islet.sandboxes.list({ offset: 1, cursor: 'x' }), 'bad_request')
  },
  'client.createJob(sandboxId, options)': async () => {
    const done = await exec.spawn(['true'])
    await until(async () => (await exec.get(done.id)).jobStatus === 'completed')
  },
  'client.listJobs(sandboxId, limit)': async () => {
    await exec.run(['true'])
    const jobs = await exec.list({ kind: 'job', limit: 10 })
    assert.ok(jobs.some(({ id }) => id === job.id) && jobs.every(({ kind }) => kind === 'job'))
  },
  'job.get()': async () => {
    assert.equal((await exec.get(job.id)).jobStatus, 'running')
  },
  'job.stop()': async () => {
    await exec.kill(job.id, 'SIGTERM')
    await until(async () => (await exec.get(job.id)).jobStatus === 'cancelled')
  },
  'client.createDiskCheckpoint(sandboxId, name)': async () => {
    await failsWith(sandbox.createCheckpoint('base'), 'conflict')
  },
  'client.listDiskCheckpoints(sandboxId)': async () => {
    assert.deepEqual(
      (await sandbox.listCheckpoints()).map(({ name }) => name),
      ['base'],
    )
  },
  'checkpoint.restore()': async () => {
    await files.write('after', 'x')
    assert.deepEqual((await sandbox.restoreCheckpoint(checkpoint.id)).services, [])
    assert.equal(await files.exists('after'), false)
  },
  'checkpoint.delete()': async () => {
    await sandbox.deleteCheckpoint(checkpoint.id)
    assert.deepEqual(await sandbox.listCheckpoints(), [])
  },
  'client.createSnapshot(sandboxId, options)': async () => {
    assert.equal((await sandbox.createSnapshot({ name: 'snap', tag: 'v1' })).tag, 'v1')
  },
  'client.getSnapshot(snapshotId)': async () => {
    assert.equal((await islet.snapshots.get('v1')).name, 'snap')
  },
  'client.listSnapshots(params)': async () => {
    const { snapshots, total } = await islet.snapshots.list({ limit: 10, offset: 0 })
    assert.deepEqual([snapshots.map(({ tag }) => tag), total], [['v1'], 1])
  },
  'client.tagSnapshot(snapshotId, tag)': async () => {
    const { id } = await islet.snapshots.tag('v1', null)
    assert.equal((await islet.snapshots.tag(id, 'v1')).tag, 'v1')
  },
  'client.deleteSnapshot(snapshotId)': async () => {
    const { id } = await sandbox.createSnapshot({ name: 'gone' })
    await islet.snapshots.delete(id)
    await failsWith(islet.snapshots.get(id), 'snapshot_not_found')
  },
  'client.getSnapshotLineage(params)': async () => {
    const { lineage, children } = await islet.snapshots.lineage('v1')
    assert.deepEqual([lineage.length, children], [1, []])
    await islet.snapshots.delete('v1')
  },
  'client.listEvents(sandboxId, params)': async () => {
    const { events } = await islet.events(sandbox.id).list({ direction: 'asc', limit: 1 })
    assert.equal(events[0]!.type, 'created')
  },
  'sandbox.execute(options)': async () => {
    const { stdout, processId } = await exec.run(['echo', 'out'])
    const url = await exec.streamUrl(processId, { channel: 'stdout' })
    assert.deepEqual([stdout, await (await fetch(url)).text()], ['out\n', 'out\n'])
  },
  'sandbox.writeFiles(files)': async () => {
    await files.write('one', 'x')
    const written = await files.batchWrite([{ path: 'two', operation: 'write', content: 'y' }])
    assert.ok(written[0]!.success)
  },
  'sandbox.readFile(path)': async () => {
    assert.equal(await new Response(await files.readStream('one')).text(), 'x')
  },
  'sandbox.listFiles(path)': async () => {
    const found = await files.list('.')
    assert.ok(found.some(({ name, path, type }) => name === 'one' && path.startsWith('/') && type === 'file'))
  },
  'sandbox.mkDir(path, recursive)': async () => {
    await files.makeDir('a/b')
    await failsWith(files.makeDir('c/d', { parents: false }), 'file_not_found')
  },
  'sandbox.rmFile(path)': async () => {
    await files.remove('one')
    await failsWith(files.remove('one'), 'file_not_found')
  },
  'sandbox.rmDir(path, recursive)': async () => {
    await failsWith(files.remove('a', { recursive: false }), 'directory_not_empty')
    await files.remove('a')
  },
  'sandbox.setEnv(env)': async () => {
    const { env } = await sandbox.update({ env: { MORE: '1', GREETING: null } })
    assert.deepEqual([env.MORE, env.GREETING], ['1', undefined])
  },
  'sandbox.get()': async () => {
    assert.equal((await sandbox.getInfo()).id, sandbox.id)
  },
  'sandbox.pause()': async () => {
    assert.deepEqual([(await sandbox.pause()).status, sandbox.status], ['paused', 'paused'])
  },
  'sandbox.resume()': async () => {
    assert.equal((await sandbox.resume()).status, 'running')
  },
  'sandbox.destroy()': async () => {
    await sandbox.kill()
    assert.equal(sandbox.status, 'stopped')
  },
})
