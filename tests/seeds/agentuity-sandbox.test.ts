// A sandbox for several commands: files, output, variables, ports, lists and states.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxClient } from '@islet/dialects/agentuity'
import { until } from '../coming-from/until.ts'
import { failsWith } from '../support/shell.ts'
import { apiKey, client, fetched, make, read, sink, url } from './agentuity.ts'
import { testSeed } from './seeds.ts'

const { Buffer } = globalThis
const aborted = { name: 'AbortError', constructor: DOMException }

testSeed('agentuity/sandbox', {
  'several commands share files': async () => {
    await using sandbox = await make()
    await sandbox.execute({ command: ['sh', '-c', 'echo 1 > count'] })
    const execution = await sandbox.execute({ command: ['cat', 'count'] })
    assert.equal(await fetched(execution.stdoutStreamUrl), '1\n')
  },
  'files are made, listed, read and removed': async () => {
    await using sandbox = await make()
    await sandbox.mkDir('src/deep', true)
    await assert.rejects(sandbox.mkDir('a/b/c'), 'parents are made only if asked for')
    const written = await sandbox.writeFiles([
      { path: 'src/index.ts', content: Buffer.from('process.stdout.write("ok")') },
      { path: 'src/text', content: 'text' },
    ])
    assert.equal(written, 2)
    await sandbox.execute({ command: ['ln', '-s', 'text', 'src/link'] })
    const files = await sandbox.listFiles('src')
    assert.deepEqual(
      files.map(({ path, size, isDir, isSymlink, linkTarget, mode }) => ({
        path,
        size: isDir ? 0 : size,
        isDir,
        isSymlink,
        linkTarget,
        mode: isSymlink ? '' : mode,
      })),
      [
        { path: 'deep', size: 0, isDir: true, isSymlink: false, linkTarget: undefined, mode: '0755' },
        { path: 'index.ts', size: 26, isDir: false, isSymlink: false, linkTarget: undefined, mode: '0644' },
        { path: 'link', size: 4, isDir: false, isSymlink: true, linkTarget: 'text', mode: '' },
        { path: 'text', size: 4, isDir: false, isSymlink: false, linkTarget: undefined, mode: '0644' },
      ],
    )
    assert.ok(Date.parse(files[0]!.modTime) > 0)
    assert.equal(await read(await sandbox.readFile('src/index.ts')), 'process.stdout.write("ok")')
    assert.deepEqual(await sandbox.rmFile('src/index.ts'), { found: true })
    assert.deepEqual(await sandbox.rmFile('src/index.ts'), { found: false })
    await failsWith(sandbox.rmFile('src'), 'is_a_directory')
    await failsWith(sandbox.rmDir('src'), 'directory_not_empty')
    assert.deepEqual(await sandbox.rmDir('src', true), { found: true })
    assert.deepEqual(await sandbox.rmDir('src', true), { found: false })
    await failsWith(sandbox.readFile('src/index.ts'), 'file_not_found')
  },
  'output is fetched from its URLs': async () => {
    await using sandbox = await make()
    const execution = await sandbox.execute({ command: ['sh', '-c', 'printf out; printf err >&2'] })
    assert.deepEqual(
      [
        execution.exitCode,
        await fetched(execution.stdoutStreamUrl),
        await fetched(execution.stderrStreamUrl),
      ],
      [0, 'out', 'err'],
    )
    assert.equal(await fetched(execution.stdoutStreamUrl), 'out', 'it can be fetched again')
    const { stdoutStreamUrl } = await client.createJob(sandbox.id, {
      command: ['sh', '-c', 'echo live; sleep 1; echo end'],
    })
    assert.equal(await fetched(stdoutStreamUrl), 'live\nend\n', 'also while it runs')
  },
  'execute pipes output': async () => {
    await using sandbox = await make()
    const [stdout, stderr] = [await sink(), await sink()]
    const execution = await sandbox.execute({
      command: ['sh', '-c', 'printf "line 1"; printf "err 1" >&2'],
      pipe: { stdout: stdout.stream, stderr: stderr.stream },
    })
    assert.deepEqual([execution.exitCode, stdout.text(), stderr.text()], [0, 'line 1', 'err 1'])
    assert.equal(stdout.stream.writableEnded, false, 'the stream belongs to the caller')
  },
  'variables are passed, changed and deleted': async () => {
    const print = ['sh', '-c', 'printf "%s|%s" "$API_URL" "$DEBUG"']
    const result = await client.run({
      runtime: 'host',
      command: { exec: print },
      env: { API_URL: 'https://api.example.com' },
    })
    assert.equal(result.stdout, 'https://api.example.com|')
    await using sandbox = await make()
    const printed = async () => fetched((await sandbox.execute({ command: print })).stdoutStreamUrl)
    const updated = await sandbox.setEnv({ API_URL: 'https://api.example.com', DEBUG: 'true' })
    assert.deepEqual([updated.API_URL, updated.DEBUG], ['https://api.example.com', 'true'])
    assert.equal(await printed(), 'https://api.example.com|true')
    const { API_URL, DEBUG } = await sandbox.setEnv({ DEBUG: null })
    assert.deepEqual([API_URL, DEBUG], ['https://api.example.com', undefined])
    assert.equal(await printed(), 'https://api.example.com|')
  },
  'a port has a URL': async () => {
    await using sandbox = await make({ runtime: 'bun:1', network: { enabled: true, port: 3000 } })
    await sandbox.writeFiles([
      {
        path: 'server.ts',
        content: Buffer.from('Bun.serve({ port: 3000, fetch: () => new Response("ok") })'),
      },
    ])
    await client.createJob(sandbox.id, { command: ['bun', 'run', 'server.ts'] })
    const info = await sandbox.get()
    assert.deepEqual([info.networkEnabled, info.networkPort], [true, 3000])
    await until(async () => (await fetch(info.url!)).status === 200)
    assert.equal(await (await fetch(info.url!)).text(), 'ok')
    await failsWith(client.create({ network: { port: 80 } }), 'bad_request')
    await failsWith(client.create({ network: { port: 70_000 } }), 'bad_request')
  },
  'sandboxes are found by their project': async () => {
    await using sandbox = await make({ runtime: 'host', projectId: 'proj_abc123' })
    await using _other = await make({ runtime: 'host', projectId: 'proj_other' })
    const { sandboxes, total } = await client.list({ projectId: 'proj_abc123', limit: 10 })
    assert.deepEqual([sandboxes.map(({ sandboxId }) => sandboxId), total], [[sandbox.id], 1])
  },
  'an aborted command is killed, and an aborted run leaves no sandbox': async () => {
    await using sandbox = await make()
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 300)
    await assert.rejects(
      sandbox.execute({ command: ['sh', '-c', 'sleep 61'], signal: controller.signal }),
      aborted,
    )
    await until(async () => (await sandbox.inner.exec.list({ kind: 'command' }))[0]?.outcome === 'cancelled')
    const before = (await client.list()).total
    for (const ms of [0, 20, 300]) {
      const running = client.run(
        { runtime: 'host', command: { exec: ['sleep', '60'] } },
        { signal: AbortSignal.timeout(ms) },
      )
      await assert.rejects(running, DOMException)
    }
    await until(async () => (await client.list()).total === before)
  },
  'sandboxes are listed by status, a page at a time': async () => {
    const own = new SandboxClient({ url, apiKey, orgId: 'paging' })
    const made = []
    for (let count = 0; count < 3; count++) made.push(await own.create({ runtime: 'host' }))
    await client.createJob(made[0]!.id, { command: ['sleep', '60'] })
    const running = made[1]!.execute({ command: ['sleep', '60'] })
    running.catch(() => {})
    await until(async () => (await own.list({ status: 'running' })).total === 1)
    const { sandboxes, total } = await own.list({ status: 'idle', limit: 10, offset: 0 })
    assert.deepEqual([sandboxes.map(({ sandboxId }) => sandboxId), total], [[made[2]!.id, made[0]!.id], 2])
    assert.deepEqual([sandboxes[0]!.status, sandboxes[0]!.executions], ['idle', 0])
    assert.deepEqual(
      (await own.list({ status: 'idle', limit: 1, offset: 1 })).sandboxes.map(({ sandboxId }) => sandboxId),
      [made[0]!.id],
    )
    assert.deepEqual(
      (await own.list({ limit: 1, offset: 2 })).sandboxes.map(({ sandboxId }) => sandboxId),
      [made[0]!.id],
    )
    assert.equal((await own.list({ status: 'stopping' })).total, 0)
    for (const sandbox of made) await sandbox.destroy()
    assert.deepEqual([(await own.list()).total, (await own.list({ status: 'deleted' })).total], [0, 3])
  },
  'a sandbox is found again by its id': async () => {
    const sandbox = await client.create({ runtime: 'host' })
    await sandbox.writeFiles([{ path: 'here', content: 'x' }])
    const info = await client.get(sandbox.id)
    assert.equal(info.status, 'idle')
    assert.ok(Date.parse(info.createdAt) > 0)
    const existing = await client.connect(sandbox.id)
    assert.ok((await existing.listFiles()).some(({ path }) => path === 'here'))
    await existing.destroy()
    assert.equal((await client.get(sandbox.id)).status, 'terminated')
    await failsWith(client.get('sbx-00000000000000000000'), 'sandbox_not_found')
  },
  'a job goes on, is listed and stopped': async () => {
    await using sandbox = await make()
    const job = await client.createJob(sandbox.id, { command: ['sh', '-c', 'sleep 1 && echo done'] })
    assert.ok(['pending', 'running'].includes(job.status))
    await until(async () => (await job.get()).status === 'completed')
    const { exitCode, completedAt, stdoutStreamUrl } = await job.get()
    assert.deepEqual([exitCode, await fetched(stdoutStreamUrl)], [0, 'done\n'])
    assert.ok(Date.parse(completedAt!) > 0)
    assert.equal((await job.stop()).status, 'completed', 'stopping what has ended changes nothing')
  },
  'a sandbox shows its states, and a gone one its record': async () => {
    const sandbox = await client.create({ runtime: 'host' })
    assert.equal((await sandbox.get()).status, 'idle')
    const running = sandbox.execute({ command: ['sleep', '2'] })
    await until(async () => (await sandbox.get()).status === 'running')
    await running
    await sandbox.inner.hibernate()
    assert.equal((await sandbox.get()).status, 'suspended')
    await sandbox.pause().catch(() => {})
    await sandbox.destroy()
    assert.equal((await sandbox.get()).status, 'terminated')
    await failsWith(sandbox.execute({ command: ['true'] }), 'invalid_state', 'sandbox_not_found')
  },
  'an execution shows how it ended': async () => {
    await using sandbox = await make({ runtime: 'host', timeout: { execution: '1s' } })
    const ended = async (...command: string[]) => {
      const { status, exitCode } = await sandbox.execute({ command })
      return [status, exitCode]
    }
    assert.deepEqual(await ended('true'), ['completed', 0])
    assert.deepEqual(await ended('sh', '-c', 'exit 7'), ['failed', 7])
    assert.deepEqual(await ended('sleep', '60'), ['timeout', 124])
    const running = sandbox.execute({ command: ['sleep', '50'], timeout: '1m' })
    let executing: string | undefined
    await until(async () => {
      executing = (await sandbox.inner.exec.list({ status: 'running' }))[0]?.id
      return executing !== undefined
    })
    await sandbox.inner.exec.kill(executing!)
    assert.deepEqual([(await running).status, (await running).exitCode], ['cancelled', 137])
  },
  'each failure path can be told by what the reference names': async () => {
    await failsWith(client.create({ runtime: 'no-such:1' }), 'runtime_not_found')
    await using sandbox = await make({ runtime: 'host', network: { port: 8080 }, timeout: { idle: '1s' } })
    const silent = await sandbox.execute({ command: ['sh', '-c', 'echo why >&2; exit 1'] })
    assert.deepEqual(
      [silent.status, await fetched(silent.stderrStreamUrl), silent.outputTruncated],
      ['failed', 'why\n', false],
    )
    const { url: port } = await sandbox.get()
    assert.equal((await fetch(port!)).status, 502, 'nothing listens yet')
    await until(async () => (await client.get(sandbox.id)).status === 'terminated')
    const { events } = await client.listEvents(sandbox.id)
    assert.ok(events.some(({ type }) => type === 'idle-timeout'))
    await failsWith(sandbox.execute({ command: ['no-such-program'] }), 'invalid_state', 'sandbox_not_found')
  },
  'a sandbox is paused and resumed, and a command resumes it by itself': async () => {
    await using sandbox = await make()
    await sandbox.execute({ command: ['sh', '-c', 'echo kept > file'] })
    await sandbox.pause()
    const execution = await sandbox.execute({ command: ['cat', 'file'] })
    assert.deepEqual([execution.autoResumed, await fetched(execution.stdoutStreamUrl)], [true, 'kept\n'])
  },
  'a paused timeout says when the sandbox ends': async () => {
    await using sandbox = await make({ runtime: 'host', timeout: { idle: '10m', paused: '24h' } })
    const { terminatesAt } = await sandbox.pause()
    const inMs = Date.parse(terminatesAt!) - Date.now()
    assert.ok(inMs > 23 * 3_600_000 && inMs <= 24 * 3_600_000, terminatesAt)
    await using forever = await make({ runtime: 'host', timeout: { paused: '0s' } })
    assert.equal((await forever.pause()).terminatesAt, undefined)
    await using short = await make({ runtime: 'host', timeout: { paused: '1s' } })
    await short.pause()
    await sleep(1000)
    await until(async () => (await client.get(short.id)).status === 'terminated')
  },
})
