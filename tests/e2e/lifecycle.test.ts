import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox as SandboxInfo } from '@islet/contract'
import { heldBy } from '../support/held.ts'
import { WITHOUT_WARM } from '../support/server.ts'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite({ env: { ISLET_DEFAULT_RUNTIME: 'host', ...WITHOUT_WARM } })
const { islet, server } = suite

test('a sandbox is made with all that was asked for', async () => {
  const files = [
    { path: 'notes/a.txt', content: 'héllo\n' },
    {
      path: '/opt/tool',
      content: 'IyEvYmluL3NoCmVjaG8gdG9vbAo=',
      encoding: 'base64' as const,
      mode: '0755',
      owner: 'root',
    },
  ]
  await using sandbox = await suite.create({
    name: 'everything',
    description: 'all fields',
    metadata: { team: 'blue', nested: { deep: [1, 2, null] } },
    project: 'e2e',
    env: { GREETING: 'hi there', EMPTY: '' },
    files,
    resources: { memory: '256Mi', cpu: '500m', disk: '1Gi', pids: 200 },
    workdir: '/workspace/here',
  })
  const info = await sandbox.getInfo()
  // When it will sleep is worked out at each call, and may differ by a millisecond.
  assert.deepEqual({ ...(await islet.sandboxes.get(sandbox.id)), awake: info.awake }, info)
  assert.equal(info.status, 'running')
  assert.deepEqual([info.name, info.description, info.project], ['everything', 'all fields', 'e2e'])
  assert.deepEqual(info.metadata, { team: 'blue', nested: { deep: [1, 2, null] } })
  assert.deepEqual([info.env.GREETING, info.env.EMPTY], ['hi there', ''])
  assert.deepEqual(info.resources, { memoryBytes: 2 ** 28, cpuMillis: 500, diskBytes: 2 ** 30, pids: 200 })
  assert.deepEqual([info.user, info.workdir, info.network.enabled], ['user', '/workspace/here', false])
  assert.equal(
    await say(sandbox, 'pwd; echo "$GREETING"; cat notes/a.txt; /opt/tool'),
    '/workspace/here\nhi there\nhéllo\ntool',
  )
  assert.equal(await say(sandbox, 'stat -c "%U %a" notes/a.txt /opt/tool'), 'user 644\nroot 755')
  assert.equal(await say(sandbox, 'echo "$GREETING $MORE"', { env: { GREETING: 'bye', MORE: '1' } }), 'bye 1')
})

test('an update merges the environment, replaces metadata and renames', async () => {
  await using sandbox = await suite.create({ name: 'old', env: { A: '1', B: '2' }, metadata: { a: 1 } })
  const info = await sandbox.update({
    name: 'new',
    env: { B: null, C: '3' },
    metadata: { b: 2 },
    description: 'd',
  })
  assert.deepEqual([info.env.A, info.env.B, info.env.C], ['1', undefined, '3'])
  assert.deepEqual([info.name, info.metadata, info.description], ['new', { b: 2 }, 'd'])
  assert.equal(await say(sandbox, 'echo $A-$B-$C'), '1--3')
  assert.equal((await sandbox.update({ name: null })).name, null)
  assert.ok(info.updatedAt >= info.createdAt)
})

test('limits hold inside, and an update of them takes effect', async () => {
  await using sandbox = await suite.create({ resources: { memory: '64Mi', pids: 30 } })
  const look = 'cd /sys/fs/cgroup; cat memory.max 2>/dev/null || cat memory/memory.limit_in_bytes'
  assert.equal(await say(sandbox, look), String(64 * 1024 * 1024))
  const hog = ['python3', '-c', 'b = bytearray(150 << 20); print(len(b))']
  const killed = await sandbox.exec.run(hog)
  assert.deepEqual([killed.exitCode, killed.signal, killed.oom], [137, 'SIGKILL', true])
  const forks = 'for i in $(seq 60); do sleep 5 & done; wait'
  assert.match((await sandbox.exec.run(forks)).stderr, /fork|Resource|temporarily/i)
  await sandbox.update({ resources: { memory: '512Mi', pids: 300 } })
  assert.equal(await say(sandbox, look), String(512 * 1024 * 1024))
  assert.equal((await sandbox.exec.run(hog)).exitCode, 0)
  assert.deepEqual((await sandbox.getInfo()).resources.pids, 300)
  const total = async () => Number(/^Mem: +(\d+)/m.exec(await say(sandbox, 'free -b'))?.[1])
  assert.equal(await total(), 512 * 1024 * 1024)
  const cores = Math.min(2, availableParallelism())
  const count = "nproc; python3 -c 'import os; print(os.cpu_count())'"
  assert.equal(await say(sandbox, count), `${cores}\n${cores}`)
  await sandbox.update({ resources: { memory: '300Mi', cpu: '500m' } })
  assert.equal(await total(), 300 * 1024 * 1024)
  assert.equal(await say(sandbox, count), '1\n1')
  const usage = await sandbox.usage()
  assert.ok(
    usage.oomKills >= 1 && usage.memoryBytes > 0 && usage.pids >= 1 && usage.cpuUsec > 0,
    JSON.stringify(usage),
  )
})

test('every call refuses limits above what the machine has, and says what it has', async () => {
  const { machine } = await islet.info()
  assert.ok(machine.memoryBytes > 0 && machine.cpuMillis >= 10 && machine.diskBytes > 0 && machine.pids >= 16)
  await using sandbox = await suite.create()
  const { resources } = await sandbox.getInfo()
  const tooMuch = {
    memory: [
      machine.memoryBytes + 1,
      '1Ti',
      /^resources\.memory is 1Ti, but this server allows [\d.]+[MG]i\.$/,
    ],
    cpu: [
      (machine.cpuMillis + 1) / 1000,
      999,
      /^resources\.cpu is 999 cores, but this server allows [\d.]+ cores?\.$/,
    ],
    disk: [
      machine.diskBytes + 1,
      '900Ti',
      /^resources\.disk is 900Ti, but this server allows [\d.]+[GT]i\.$/,
    ],
  } as const
  for (const [option, [justAbove, absurd, message]] of Object.entries(tooMuch)) {
    for (const value of [justAbove, absurd]) {
      const asked = { resources: { [option]: value } }
      await failsWith(suite.create(asked), 'limit_too_high')
      await failsWith(sandbox.update(asked), 'limit_too_high')
      await failsWith(sandbox.fork(asked), 'limit_too_high')
    }
    await assert.rejects(suite.create({ resources: { [option]: absurd } }), { message })
  }
  assert.deepEqual((await sandbox.getInfo()).resources, resources)
  const { memoryBytes, cpuMillis, diskBytes } = machine
  const all = { memory: memoryBytes, cpu: cpuMillis / 1000, disk: diskBytes }
  assert.deepEqual((await sandbox.update({ resources: all })).resources, { ...machine, pids: resources.pids })
})

test('lists find sandboxes by name, project, metadata and status, page by page', async () => {
  const made = []
  for (let n = 0; n < 5; n++) {
    made.push(
      await suite.create({
        name: `listed-${n}`,
        project: 'lists',
        metadata: { n, kind: n % 2 ? 'odd' : 'even' },
      }),
    )
  }
  const ids = (page: { sandboxes: SandboxInfo[] }) => page.sandboxes.map(({ id }) => id)
  const newestFirst = made.map(({ id }) => id).reverse()
  assert.deepEqual(ids(await islet.sandboxes.list({ project: 'lists' })), newestFirst)
  assert.deepEqual(ids(await islet.sandboxes.list({ name: 'listed-3' })), [made[3]!.id])
  assert.equal((await islet.sandboxes.list({ project: 'lists', metadata: 'kind=odd' })).total, 2)
  assert.equal((await islet.sandboxes.list({ project: 'lists', metadata: ['kind=even', 'n=2'] })).total, 1)
  const pages: string[] = []
  for (let cursor: string | undefined, first = true; first || cursor; first = false) {
    const page = await islet.sandboxes.list({ project: 'lists', limit: 2, cursor })
    assert.ok(page.sandboxes.length <= 2)
    pages.push(...ids(page))
    cursor = page.cursor
  }
  assert.deepEqual(pages, newestFirst)
  await made[0]!.kill()
  assert.equal((await islet.sandboxes.list({ project: 'lists' })).total, 4)
  assert.equal((await islet.sandboxes.list({ project: 'lists', status: 'stopped' })).total, 1)
  assert.equal((await islet.sandboxes.list({ project: 'lists', status: 'all' })).total, 5)
  await Promise.all(made.map((each) => each.kill()))
})

test('a delete frees everything, may be repeated, and leaves a record', async () => {
  const before = heldBy(server)
  const sandbox = await suite.create({ files: [{ path: 'a', content: 'b' }] })
  await sandbox.exec.spawn('sleep 1000')
  await say(sandbox, 'echo output')
  assert.notDeepEqual(heldBy(server), before)
  await Promise.all([sandbox.kill(), sandbox.kill(), sandbox.kill()])
  await sandbox.kill()
  assert.deepEqual(heldBy(server), before)
  const info = await sandbox.getInfo()
  assert.equal(info.status, 'stopped')
  assert.ok(info.stoppedAt)
  assert.equal(await sandbox.isRunning(), false)
  await failsWith(sandbox.runCommand('id'), 'invalid_state', 'sandbox_lost')
  await failsWith(sandbox.files.read('a'), 'invalid_state', 'sandbox_lost')
})

test('thirty creates at once all succeed, each with its own computer', async () => {
  const before = heldBy(server)
  const sandboxes = await Promise.all(
    Array.from({ length: 30 }, () => suite.create({ resources: { memory: '64Mi' } })),
  )
  const maps = await Promise.all(sandboxes.map((each) => say(each, 'cat /proc/self/uid_map && hostname')))
  assert.equal(new Set(maps).size, 30)
  assert.equal(new Set(maps.map((map) => map.trim().split(/\s+/)[1])).size, 30)
  await Promise.all(sandboxes.map((each) => each.kill()))
  assert.deepEqual(heldBy(server), before)
})

test('a delete ends the commands that run with sandbox_lost', async () => {
  const sandbox = await suite.create()
  const running = sandbox.exec.run('echo begun; sleep 1000')
  const session = await sandbox.exec.start('sleep 1000')
  const lost = [failsWith(running, 'sandbox_lost'), failsWith(session.done, 'sandbox_lost')]
  while ((await sandbox.exec.list({ status: 'running' })).length < 2);
  await sandbox.kill()
  await Promise.all(lost)
})

test('a create whose client disconnects leaves nothing', async () => {
  const before = JSON.stringify(heldBy(server))
  for (const delayMs of [0, 1, 5, 20, 50]) {
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"name":"gone"}' }
    await server.fetch('/v1/sandboxes', { ...init, signal: AbortSignal.timeout(delayMs) }).catch(() => {})
  }
  await settled(async () => {
    const { sandboxes } = await islet.sandboxes.list({ name: 'gone' })
    // A create may have been faster than its client.
    await Promise.all(
      sandboxes.filter(({ status }) => status === 'running').map(({ id }) => islet.sandboxes.delete(id)),
    )
    return JSON.stringify(heldBy(server)) === before
  })
})

// The SDK always sends an Idempotency-Key, and the server keeps the result of such a create for a retry with the same key.
test('a create that is aborted in the SDK leaves nothing', async () => {
  for (const delayMs of [1, 5, 20]) {
    const outcome = await suite
      .create({ signal: AbortSignal.timeout(delayMs), project: 'aborted' })
      .catch((error) => error)
    if ('id' in outcome) await outcome.kill()
    else assert.equal(outcome.name, 'AbortError')
  }
  const isGone = async () => (await islet.sandboxes.list({ project: 'aborted' })).total === 0
  await settled(isGone, 2000).finally(async () => {
    for await (const { id } of islet.sandboxes.all({ project: 'aborted' })) await islet.sandboxes.delete(id)
  })
})

test('a sandbox for a user that its image does not have is refused', async () => {
  await failsWith(suite.create({ user: 'ghost', name: 'ghostly' }), 'user_not_found').finally(async () => {
    for await (const { id } of islet.sandboxes.all({ name: 'ghostly' })) await islet.sandboxes.delete(id)
  })
})

test('a one-shot run collects the result and removes its sandbox', async () => {
  const before = heldBy(server)
  const result = await islet.run('cat; echo err >&2; exit 7', {
    stdin: 'in',
    env: { A: '1' },
    runtime: 'host',
  })
  assert.deepEqual([result.exitCode, result.stdout, result.stderr], [7, 'in', 'err\n'])
  assert.equal((await islet.sandboxes.get(result.sandboxId)).status, 'stopped')
  await failsWith(islet.run(['no-such-program'], { runtime: 'host' }), 'command_not_found')
  assert.deepEqual(heldBy(server), before)
})

async function settled(isSo: () => Promise<boolean>, deadlineMs = 20_000): Promise<void> {
  const deadline = Date.now() + deadlineMs
  while (!(await isSo())) {
    assert.ok(Date.now() < deadline, 'it did not settle')
    await sleep(20)
  }
}
