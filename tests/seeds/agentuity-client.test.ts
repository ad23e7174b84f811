// The client: runtimes, one-shot runs and their streams.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { SandboxClient } from '@islet/dialects/agentuity'
import { until } from '../coming-from/until.ts'
import { failsWith } from '../support/shell.ts'
import { apiKey, client, fetched, make, read, sink, suite, url } from './agentuity.ts'
import { testSeed } from './seeds.ts'

const { Buffer } = globalThis

testSeed('agentuity/client', {
  'a client takes its key from the option or from a variable': async () => {
    const names = ['AGENTUITY_SDK_KEY', 'AGENTUITY_CLI_KEY']
    for (const name of names) {
      process.env[name] = apiKey
      assert.ok((await new SandboxClient({ url }).listRuntimes()).total > 0, name)
      delete process.env[name]
    }
    process.env.AGENTUITY_SDK_KEY = apiKey
    process.env.AGENTUITY_CLI_KEY = 'another-key-that-is-wrong'
    assert.ok((await new SandboxClient({ url }).listRuntimes()).total > 0, 'the first variable wins')
    await failsWith(new SandboxClient({ url, apiKey: 'islet_wrong-wrong-wrong' }).list(), 'unauthorized')
    for (const name of names) delete process.env[name]
  },
  'runtimes are listed by name': async () => {
    const { runtimes, total } = await client.listRuntimes({ limit: 50 })
    assert.equal(runtimes.length, total)
    for (const name of ['bun:1', 'node:24', 'python:3.14', 'base'])
      assert.ok(
        runtimes.some((runtime) => runtime.name === name),
        name,
      )
    const second = await client.listRuntimes({ limit: 1, offset: 1 })
    assert.deepEqual(second, { runtimes: [runtimes[1]], total })
  },
  'one command runs in a sandbox of its own': async () => {
    const result = await client.run({
      runtime: 'base',
      command: { exec: ['python3', '-c', 'print(sum([1, 2, 3]))'] },
      resources: { memory: '256Mi', cpu: '500m' },
      timeout: { execution: '30s' },
    })
    assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, '6\n', ''])
    assert.ok(result.durationMs > 0)
    assert.equal((await client.get(result.sandboxId)).status, 'terminated')
    const failed = await client.run({
      runtime: 'host',
      command: { exec: ['sh', '-c', 'echo no >&2; exit 3'] },
    })
    assert.deepEqual([failed.exitCode, failed.stderr], [3, 'no\n'])
    const late = await client.run({ command: { exec: ['sleep', '60'] }, timeout: { execution: '1s' } })
    assert.equal(late.exitCode, 124)
  },
  'files are written before the command': async () => {
    const result = await client.run({
      runtime: 'bun:1',
      command: {
        exec: ['bun', 'run', 'index.ts'],
        files: [
          {
            path: 'index.ts',
            content: Buffer.from('const n: number = 6\nconsole.log(n, await Bun.file("data.json").text())'),
          },
          { path: 'data.json', content: Buffer.from(JSON.stringify({ items: [1, 2, 3] })) },
        ],
      },
    })
    assert.deepEqual([result.exitCode, result.stdout], [0, '6 {"items":[1,2,3]}\n'])
  },
  'output is piped to writable streams as it comes': async () => {
    const [stdout, stderr] = [await sink(), await sink()]
    let printedFirst = ''
    const running = client.run(
      { command: { exec: ['sh', '-c', 'echo one; read line; echo "two $line"; echo err >&2'] } },
      {
        stdout: stdout.stream,
        stderr: stderr.stream,
        stdin: Readable.from(
          (async function* () {
            await until(() => stdout.text() !== '')
            printedFirst = stdout.text()
            yield 'typed\n'
          })(),
        ),
      },
    )
    assert.equal((await running).exitCode, 0)
    assert.deepEqual([printedFirst, stdout.text(), stderr.text()], ['one\n', 'one\ntwo typed\n', 'err\n'])
  },
  'several commands share files': async () => {
    await using sandbox = await make({
      runtime: 'bun:1',
      resources: { memory: '1Gi', cpu: '1000m' },
      network: { enabled: true },
      timeout: { idle: '10m', execution: '2m' },
    })
    await sandbox.writeFiles([{ path: 'lib.ts', content: Buffer.from('export const name = "Ada"') }])
    const init = await sandbox.execute({ command: ['bun', 'init', '-y'] })
    assert.equal(init.status, 'completed')
    await sandbox.writeFiles([
      { path: 'index.ts', content: Buffer.from('import { name } from "./lib"\nprocess.stdout.write(name)') },
    ])
    const execution = await sandbox.execute({ command: ['bun', 'run', 'index.ts'] })
    assert.match(execution.executionId, /^prc-/)
    assert.deepEqual([execution.exitCode, await fetched(execution.stdoutStreamUrl)], [0, 'Ada'])
  },
  'a job goes on, is listed and stopped': async () => {
    await using sandbox = await make()
    const job = await client.createJob(sandbox.id, {
      command: ['sh', '-c', 'echo begun; sleep 300 && echo done'],
    })
    const done = await client.createJob(sandbox.id, { command: ['true'] })
    const failed = await client.createJob(sandbox.id, { command: ['false'] })
    await sandbox.execute({ command: ['true'] })
    assert.equal((await job.get()).status, 'running')
    await until(async () => (await done.get()).status === 'completed')
    await until(async () => (await failed.get()).status === 'failed')
    const { jobs } = await client.listJobs(sandbox.id, 10)
    assert.deepEqual(
      jobs.map(({ jobId }) => jobId),
      [failed.jobId, done.jobId, job.jobId],
    )
    const stopped = await job.stop()
    assert.equal(stopped.status, 'cancelled')
    assert.deepEqual(stopped.command, ['sh', '-c', 'echo begun; sleep 300 && echo done'])
    assert.equal(await fetched(stopped.stdoutStreamUrl), 'begun\n')
    const stubborn = await client.createJob(sandbox.id, {
      command: ['sh', '-c', "trap '' TERM; while :; do sleep 1; done"],
    })
    assert.equal((await stubborn.stop(true)).status, 'cancelled')
  },
  'a sandbox is paused and resumed, and a command resumes it by itself': async () => {
    await using sandbox = await make()
    const awake = await sandbox.execute({ command: ['true'] })
    assert.equal(awake.autoResumed, false)
    assert.deepEqual(await sandbox.pause(), { sandboxId: sandbox.id, status: 'paused' })
    assert.equal((await sandbox.get()).status, 'paused')
    await sandbox.resume()
    assert.equal((await sandbox.get()).status, 'idle')
    await sandbox.pause()
    assert.equal((await sandbox.execute({ command: ['true'] })).autoResumed, true)
  },
  'a snapshot is the base of a new sandbox': async () => {
    await using sandbox = await make({ runtime: 'base' })
    await sandbox.writeFiles([{ path: 'installed', content: 'yes' }])
    const snapshot = await client.createSnapshot(sandbox.id, {
      name: 'with-file',
      tag: 'with-file',
      description: 'a file is in it',
    })
    assert.match(snapshot.snapshotId, /^snp-/)
    await using next = await make({ snapshot: 'with-file', resources: { memory: '512Mi' } })
    assert.equal(await read(await next.readFile('installed')), 'yes')
    assert.deepEqual((await next.get()).snapshot, { id: snapshot.snapshotId })
    const { sandboxes, total } = await client.list({ snapshotId: snapshot.snapshotId })
    assert.deepEqual([sandboxes.map(({ sandboxId }) => sandboxId), total], [[next.id], 1])
    await client.deleteSnapshot(snapshot.snapshotId)
    assert.equal((await suite.islet.snapshots.list()).total, 0)
  },
})
