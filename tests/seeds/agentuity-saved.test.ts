// Checkpoints, snapshots, the history, Hono, and the tables of the reference.
import assert from 'node:assert/strict'
import { SandboxClient } from '@islet/dialects/agentuity'
import { agentuity, type Services } from '@islet/dialects/hono'
import { Hono } from 'hono'
import { failsWith } from '../support/shell.ts'
import { apiKey, client, fetched, make, read, sink, suite, url } from './agentuity.ts'
import { testSeed } from './seeds.ts'

testSeed('agentuity/saved', {
  'a disk checkpoint is restored and deleted': async () => {
    await using sandbox = await make()
    await sandbox.writeFiles([{ path: 'file', content: 'before' }])
    const checkpoint = await client.createDiskCheckpoint(sandbox.id, 'before-upgrade')
    assert.equal(checkpoint.name, 'before-upgrade')
    await failsWith(client.createDiskCheckpoint(sandbox.id, 'before-upgrade'), 'conflict')
    await sandbox.writeFiles([{ path: 'file', content: 'after' }])
    await checkpoint.restore()
    assert.equal(await read(await sandbox.readFile('file')), 'before')
    const checkpoints = await client.listDiskCheckpoints(sandbox.id)
    assert.deepEqual(
      checkpoints.map(({ name }) => name),
      ['before-upgrade'],
    )
    await checkpoints[0]!.restore()
    await checkpoint.delete()
    assert.deepEqual(await client.listDiskCheckpoints(sandbox.id), [])
  },
  'a snapshot is the base of a new sandbox': async () => {
    await using sandbox = await make()
    await sandbox.execute({ command: ['sh', '-c', 'mkdir app && echo 1 > app/version'] })
    const { snapshotId } = await client.createSnapshot(sandbox.id, { tag: 'app' })
    await using next = await make({ snapshot: snapshotId })
    assert.equal(await read(await next.readFile('app/version')), '1\n')
    await client.deleteSnapshot(snapshotId)
  },
  'snapshots are listed, tagged and deleted': async () => {
    await using sandbox = await make()
    const first = await client.createSnapshot(sandbox.id, { name: 'one', description: 'the first' })
    const second = await client.createSnapshot(sandbox.id)
    const { snapshots, total } = await client.listSnapshots({ limit: 20 })
    assert.deepEqual(
      [snapshots.map(({ snapshotId }) => snapshotId), total],
      [[second.snapshotId, first.snapshotId], 2],
    )
    assert.deepEqual((await client.listSnapshots({ limit: 1, offset: 1 })).snapshots, [snapshots[1]])
    const snapshot = await client.getSnapshot(first.snapshotId)
    assert.deepEqual([snapshot.name, snapshot.description, snapshot.tag], ['one', 'the first', undefined])
    assert.equal((await client.tagSnapshot(snapshot.snapshotId, 'v1.0')).tag, 'v1.0')
    assert.equal((await client.getSnapshot('v1.0')).snapshotId, first.snapshotId)
    assert.equal((await client.tagSnapshot(snapshot.snapshotId, null)).tag, undefined)
    for (const { snapshotId } of snapshots) await client.deleteSnapshot(snapshotId)
    await failsWith(client.getSnapshot(first.snapshotId), 'snapshot_not_found')
  },
  'the lineage leads from a snapshot to its parent': async () => {
    await using sandbox = await make()
    const parent = await client.createSnapshot(sandbox.id, { name: 'parent' })
    await using middle = await make({ snapshot: parent.snapshotId })
    const child = await client.createSnapshot(middle.id, { name: 'child', tag: 'child' })
    assert.equal(child.parentSnapshotId, parent.snapshotId)
    const { lineage, total } = await client.getSnapshotLineage({ snapshot: child.snapshotId })
    assert.deepEqual(
      lineage.map(({ snapshotId, name }) => [snapshotId, name]),
      [
        [child.snapshotId, 'child'],
        [parent.snapshotId, 'parent'],
      ],
    )
    assert.ok(lineage.every(({ createdAt }) => Date.parse(createdAt) > 0) && total === 2)
    assert.equal((await client.getSnapshotLineage({ name: 'parent' })).lineage.length, 1)
    await failsWith(client.getSnapshotLineage({ name: 'nobody' }), 'snapshot_not_found')
    for (const { snapshotId } of lineage) await client.deleteSnapshot(snapshotId)
  },
  'a snapshot and a runtime are not given together': async () => {
    await failsWith(client.create({ snapshot: 'any', runtime: 'host' }), 'bad_request')
    await failsWith(client.create({ snapshot: 'any', runtimeId: 'srt_00' }), 'bad_request')
    await failsWith(client.create({ snapshot: 'nobody' }), 'snapshot_not_found')
  },
  'the history is listed in order': async () => {
    const sandbox = await client.create({ runtime: 'host' })
    await sandbox.pause()
    await sandbox.resume()
    await sandbox.destroy()
    const { events } = await client.listEvents(sandbox.id, { limit: 50, direction: 'asc' })
    const types = events
      .map(({ type }) => type)
      .filter((type) => /^(created|paused|resumed|stopped)$/.test(type))
    assert.deepEqual(types, ['created', 'paused', 'resumed', 'stopped'])
    assert.ok(
      events.every(
        ({ eventId, createdAt, sandboxId }) => eventId && Date.parse(createdAt) && sandboxId === sandbox.id,
      ),
    )
    const newest = await client.listEvents(sandbox.id, { limit: 1, direction: 'desc' })
    assert.equal(newest.events[0]!.type, 'stopped')
  },
  'a Hono app has the client as a variable': async () => {
    type Variables = Pick<Services, 'sandbox'>
    const app = new Hono<{ Variables: Variables }>()
    app.use('*', agentuity({ sandbox: { url, apiKey } }))
    app.post('/execute', async (c) =>
      c.json(await c.var.sandbox.run({ runtime: 'host', command: { exec: ['echo', 'ok'] } })),
    )
    const response = await app.request('/execute', { method: 'POST' })
    const { exitCode, stdout } = (await response.json()) as { exitCode: number; stdout: string }
    assert.deepEqual([response.status, exitCode, stdout], [200, 0, 'ok\n'])
    const shared = new Hono<{ Variables: Variables }>()
    shared.use(agentuity({ services: { clients: { sandbox: client } } }))
    shared.get('/', (c) => c.text(String(c.var.sandbox === client)))
    assert.equal(await (await shared.request('/')).text(), 'true')
  },
})

testSeed('agentuity/reference', {
  'the client takes every option': async () => {
    const told: string[] = []
    const own = new SandboxClient({
      url,
      apiKey,
      orgId: 'org_1',
      logger: { debug: (message) => told.push(message) },
    })
    const sandbox = await own.create({ runtime: 'host' })
    await using _other = await make()
    const { sandboxes, total } = await own.list()
    assert.deepEqual([total, sandboxes[0]!.sandboxId, sandboxes[0]!.org.id], [1, sandbox.id, 'org_1'])
    await own.destroy(sandbox.id)
    assert.deepEqual(told, ['sandbox created', 'sandbox destroyed'])
  },
  'create takes every option of the reference': async () => {
    const { runtimes } = await client.listRuntimes()
    const { id: runtimeId } = runtimes.find(({ name }) => name === 'host')!
    await using sandbox = await make({
      runtimeId,
      name: 'worker',
      description: 'it works',
      resources: { memory: '256Mi', cpu: '500m', disk: '512Mi' },
      network: { enabled: true, port: 3000 },
      projectId: 'proj_1',
      timeout: { idle: '10m', execution: '30s', paused: '24h' },
      env: { A: '1' },
      files: [
        { path: 'text', content: 'text' },
        { path: 'bytes', content: new Uint8Array([0, 255]) },
      ],
      metadata: { team: 'blue', nested: { n: 1 } },
    })
    const { sandboxId, createdAt, org, executions, url: port, ...info } = await sandbox.get()
    assert.deepEqual(info, {
      name: 'worker',
      description: 'it works',
      status: 'idle',
      mode: 'interactive',
      runtime: { id: runtimeId, name: 'host' },
      networkEnabled: true,
      networkPort: 3000,
      projectId: 'proj_1',
      timeout: { idle: '600s', execution: '30s', paused: '86400s' },
      resources: { memory: '256Mi', cpu: '500m', disk: '512Mi' },
      metadata: { team: 'blue', nested: { n: 1 } },
    })
    assert.ok(sandboxId && createdAt && org && executions === 0 && port)
    const printed = await sandbox.execute({ command: ['sh', '-c', 'echo $A; cat text; od -An -tu1 bytes'] })
    assert.equal(await fetched(printed.stdoutStreamUrl), '1\ntext   0 255\n')
    await using twin = await make({ runtime: 'host', name: 'worker' })
    assert.equal((await client.list({ name: 'worker' })).total, 2, 'names need not be unique')
    assert.equal((await twin.get()).name, 'worker')
    await failsWith(client.create({ runtimeId: 'srt_zz' }), 'runtime_not_found')
    await failsWith(client.create({ resources: { memory: 'much' } }), 'bad_request')
    await failsWith(client.create({ scope: [] } as object), 'bad_request')
  },
  'packages are installed at create': async () => {
    await using sandbox = await make({ runtime: 'base', dependencies: ['jq'], packages: ['cowsay'] })
    const execution = await sandbox.execute({ command: ['sh', '-c', 'echo "{}" | jq -c .; cowsay moo'] })
    assert.match(await fetched(execution.stdoutStreamUrl), /^\{\}\n[\s\S]*moo/)
    await failsWith(client.create({ packages: ['a; b'] }), 'bad_request')
  },
  'a snapshot id or tag is taken': async () => {
    await using sandbox = await make()
    const { snapshotId } = await client.createSnapshot(sandbox.id, { tag: 'by-tag' })
    for (const snapshot of [snapshotId, 'by-tag']) {
      await using next = await make({ snapshot })
      assert.equal((await next.get()).snapshot?.id, snapshotId)
    }
    await client.deleteSnapshot(snapshotId)
  },
  'scopes give programs inside the store': async () => {
    await using sandbox = await make({ runtime: 'host', scopes: ['services:read', 'services:write'] })
    const print = { command: ['sh', '-c', 'test -n "$ISLET_STORE_URL" && test -n "$ISLET_STORE_TOKEN"'] }
    assert.equal((await sandbox.execute(print)).exitCode, 0)
    await using without = await make()
    assert.equal((await without.execute(print)).exitCode, 1)
    await failsWith(client.create({ scopes: ['mail:send'] }), 'not_supported')
    await failsWith(client.create({ scopes: ['services:read'] }), 'not_supported')
  },
  'execute takes every option': async () => {
    await using sandbox = await make()
    const { stream, text } = await sink()
    const execution = await sandbox.execute({
      command: ['sh', '-c', 'cat input; echo err >&2'],
      files: [{ path: 'input', content: Buffer.from('given') }],
      timeout: '30s',
      stream: { stderr: 'ignore' },
      pipe: { stdout: stream },
      signal: new AbortController().signal,
    })
    assert.deepEqual([text(), execution.stderrStreamUrl], ['given', undefined])
    assert.equal(await fetched(execution.stdoutStreamUrl), 'given')
    assert.equal((await sandbox.execute({ command: ['sleep', '60'], timeout: '1s' })).status, 'timeout')
    await failsWith(sandbox.execute({ command: ['true'], stream: { stdout: 'stream_1' } }), 'not_supported')
    await failsWith(sandbox.execute({ command: ['true'], stream: { timestamps: true } }), 'not_supported')
  },
  'an instance has every member': async () => {
    await using sandbox = await make()
    const names = [
      'execute',
      'writeFiles',
      'readFile',
      'listFiles',
      'mkDir',
      'rmFile',
      'rmDir',
      'setEnv',
      'get',
      'pause',
      'resume',
      'destroy',
    ] as const
    for (const name of names) assert.equal(typeof sandbox[name], 'function', name)
    assert.match(sandbox.id, /^sbx-/)
    assert.equal(sandbox.status, 'idle')
    await sandbox.pause()
    assert.equal(sandbox.status, 'paused')
  },
  'an execution has every field': async () => {
    await using sandbox = await make()
    const execution = await sandbox.execute({ command: ['sh', '-c', 'head -c 20000000 /dev/zero'] })
    assert.deepEqual(
      [execution.status, execution.exitCode, execution.outputTruncated, execution.autoResumed],
      ['completed', 0, true, false],
    )
    assert.ok(execution.executionId && execution.durationMs! > 0)
    assert.ok(execution.stdoutStreamUrl?.startsWith('http') && execution.stderrStreamUrl?.startsWith('http'))
  },
  'the result of a run has every field': async () => {
    const { sandboxId, durationMs, ...rest } = await client.run({
      runtime: 'host',
      command: { exec: ['sh', '-c', 'echo out; echo err >&2'] },
    })
    assert.deepEqual(rest, { exitCode: 0, stdout: 'out\n', stderr: 'err\n' })
    assert.ok(sandboxId.startsWith('sbx-') && durationMs > 0)
    assert.equal((await suite.islet.sandboxes.get(sandboxId)).status, 'stopped')
  },
})
