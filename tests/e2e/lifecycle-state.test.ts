// Every state of a sandbox with every verb over HTTP, and the processes that run in it.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { SANDBOX_STATUSES, type Sandbox as SandboxInfo, type SandboxStatus } from '@islet/contract'
import { hasCode, type Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { becomes, breakDown, errorIn, eventsOf, firstProcessOf, movesOf } from '../support/life.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const { islet, server } = suite

const MIB = 1024 * 1024
const VERBS = ['pause', 'resume', 'hibernate', 'wake', 'restore', 'delete'] as const
type Verb = (typeof VERBS)[number]
/** The sandbox is already in the verb's target state: the verb changes nothing and returns it. */
const STAYS: Partial<Record<SandboxStatus, readonly Verb[]>> = {
  running: ['resume', 'wake'],
  paused: ['pause'],
  hibernated: ['hibernate'],
  stopped: ['delete'],
}
/** The state that a verb leads to from this state, and its event. All other verbs are refused. */
const MOVES: Record<SandboxStatus, Partial<Record<Verb, [SandboxStatus, string]>>> = {
  creating: {},
  running: {
    pause: ['paused', 'paused'],
    hibernate: ['hibernated', 'hibernated'],
    restore: ['running', 'restored'],
    delete: ['stopped', 'stopped'],
  },
  paused: {
    resume: ['running', 'resumed'],
    restore: ['running', 'restored'],
    delete: ['stopped', 'stopped'],
  },
  hibernated: {
    wake: ['running', 'woken'],
    restore: ['running', 'restored'],
    delete: ['stopped', 'stopped'],
  },
  failed: { restore: ['running', 'restored'], delete: ['stopped', 'stopped'] },
  stopped: {},
}
const TARGETS: Record<Verb, SandboxStatus> = {
  pause: 'paused',
  resume: 'running',
  hibernate: 'hibernated',
  wake: 'running',
  restore: 'running',
  delete: 'stopped',
}
const INTO: Record<Exclude<SandboxStatus, 'creating'>, (sandbox: Sandbox) => Promise<unknown>> = {
  running: async () => {},
  paused: (sandbox) => sandbox.pause(),
  hibernated: (sandbox) => sandbox.hibernate(),
  failed: breakDown,
  stopped: (sandbox) => sandbox.kill(),
}

for (const status of SANDBOX_STATUSES.filter((one) => one !== 'creating')) {
  test(`each verb moves a sandbox that is ${status} as the table says, or changes nothing`, async () => {
    const [refusing, checkpoint] = await inState(status)
    for (const verb of VERBS.filter((one) => !MOVES[status][one])) {
      if (STAYS[status]?.includes(verb)) await assertStays(refusing, verb, checkpoint)
      else await assertRefused(refusing, verb, checkpoint)
    }
    await refusing.kill()
    for (const [verb, [target, event]] of Object.entries(MOVES[status])) {
      const [moving, checkpoint] = await inState(status)
      const before = await movesOf(server, moving.id)
      const answer = await tell(moving.id, verb as Verb, checkpoint)
      assert.equal(answer.status, 200, `${status} ${verb}`)
      const told = (await answer.json()) as SandboxInfo | { sandbox: SandboxInfo }
      assert.equal(('sandbox' in told ? told.sandbox : told).status, target, `${status} ${verb}`)
      assert.equal((await moving.getInfo()).status, target)
      assert.deepEqual(await movesOf(server, moving.id), [...before, event], `${status} ${verb}`)
      if (target === 'running') assert.equal(await say(moving, 'cat mark'), 'here')
      await moving.kill()
    }
  })
}

test('a failed sandbox is saved and forked with all its files, and runs again when it is restored', async () => {
  await using sandbox = await suite.create({ env: { KEPT: 'yes' } })
  await sandbox.service.start({ name: 'idler', start: 'exec sleep 1000' })
  await sandbox.service.waitFor('idler', 'running')
  await sandbox.store.set('step', { value: 7 })
  await say(sandbox, 'echo all > work')
  await breakDown(sandbox)
  const snapshot = await sandbox.createSnapshot()
  const checkpoint = await sandbox.createCheckpoint('after')
  assert.equal(checkpoint.memory, false)
  await using fork = await sandbox.fork()
  await using begun = await islet.sandboxes.create({ snapshot: snapshot.id })
  assert.equal((await sandbox.getInfo()).status, 'failed')
  const restored = await sandbox.restoreCheckpoint(checkpoint.id)
  assert.deepEqual(restored.services, [{ name: 'idler', outcome: 'started', reason: null }])
  for (const one of [sandbox, fork, begun]) {
    assert.equal(await say(one, 'cat work; echo $KEPT'), 'all\nyes')
    assert.equal((await one.store.get('step')).value, 7)
    await one.service.waitFor('idler', 'running')
  }
  await sandbox.deleteCheckpoint(checkpoint.id)
  await islet.snapshots.delete(snapshot.id)
})

test('a sandbox in the making refuses every verb and every use, and is made', async () => {
  const name = `making-${Date.now()}`
  const files = Array.from({ length: 1000 }, (_, n) => ({ path: `files/${n}`, content: `${n}` }))
  const made = suite.create({ name, files })
  let id = ''
  await Promise.all([
    made,
    until(async () => {
      const { sandboxes } = await islet.sandboxes.list({ name })
      id = sandboxes[0]?.id ?? ''
      return id !== ''
    }).then(async () => {
      const said = VERBS.filter((verb) => verb !== 'restore')
      const answers = await Promise.all([
        ...said.map((verb) => tell(id, verb, '')),
        server.post(`/v1/sandboxes/${id}/exec`, { command: 'true' }),
      ])
      for (const [at, answer] of answers.entries()) {
        const { code, details } = await errorIn(answer)
        assert.deepEqual([answer.status, code, details?.status], [409, 'invalid_state', 'creating'])
        assert.equal(details?.wanted, at < said.length ? TARGETS[said[at]!] : 'running')
      }
    }),
  ])
  await using sandbox = await made
  assert.equal(sandbox.id, id)
  assert.deepEqual(await movesOf(server, id), ['created', 'started'])
  assert.equal(await say(sandbox, 'ls files | wc -l'), '1000')
})

for (const [stop, goOn] of [
  ['pause', 'resume'],
  ['hibernate', 'wake'],
] as const) {
  test(`processes are frozen from ${stop} to ${goOn}, and continue exactly where they were`, async () => {
    await using sandbox = await suite.create({ timeout: { idle: 0 } })
    const counter = await sandbox.exec.spawn('n=0; while n=$((n+1)); do echo $n; sleep 0.005; done > count')
    await until(() => sandbox.files.exists('count'))
    await until(async () => Number(await say(sandbox, 'wc -l < count')) > 20)
    const info = await sandbox[stop]()
    assert.equal(info.status, TARGETS[stop])
    assert.equal(sandbox.status, TARGETS[stop])
    const { cpuUsec } = await sandbox.usage()
    await sleep(200)
    assert.equal((await sandbox.usage()).cpuUsec, cpuUsec)
    assert.equal(await sandbox.isRunning(), false)
    assert.equal((await sandbox[goOn]()).status, 'running')
    assert.ok(await sandbox.isRunning())
    const now = Number(await say(sandbox, 'wc -l < count'))
    await until(async () => Number(await say(sandbox, 'wc -l < count')) > now + 20)
    const { pid, status } = await sandbox.exec.get(counter.id)
    assert.deepEqual([pid, status], [counter.pid, 'running'])
    await sandbox.exec.kill(counter.id)
    await until(async () => (await sandbox.exec.get(counter.id)).status !== 'running')
    const count = (await sandbox.files.read('count')).trimEnd().split('\n').map(Number)
    assert.deepEqual(
      count,
      count.map((_, at) => at + 1),
    )
  })
}

test('a command that a client waits for is paused too, and answers after the sandbox is resumed', async () => {
  await using sandbox = await suite.create()
  const running = sandbox.exec.run('touch begun; until test -e go; do sleep 0.01; done; echo done')
  await until(() => sandbox.files.exists('begun'))
  await sandbox.pause()
  assert.equal(await Promise.race([running, sleep(200, 'still')]), 'still')
  await sandbox.files.write('go', '')
  assert.equal((await running).stdout, 'done\n')
})

test('a file on its way in or out waits too, and arrives whole', async () => {
  await using sandbox = await suite.create()
  const piece = randomBytes(MIB)
  const halfway = Promise.withResolvers<void>()
  const goesOn = Promise.withResolvers<void>()
  async function* pieces() {
    for (let n = 0; n < 32; n++) {
      if (n === 16) halfway.resolve()
      yield piece
    }
    await goesOn.promise
  }
  const written = sandbox.files.write('file', pieces())
  await halfway.promise
  await sandbox.pause()
  goesOn.resolve()
  assert.equal(await Promise.race([written.then(() => 'written'), sleep(200, 'waiting')]), 'waiting')
  await sandbox.resume()
  await written
  let size = 0
  for await (const bytes of await sandbox.files.readStream('file')) {
    if (size === 0) await sandbox.pause().then(() => sandbox.resume())
    size += bytes.length
  }
  assert.equal(size, 32 * MIB)
  const expected = createHash('sha256')
  for (let n = 0; n < 32; n++) expected.update(piece)
  assert.equal((await say(sandbox, 'sha256sum file')).slice(0, 64), expected.digest('hex'))
})

test('calls that a pause overtakes wait, and none is lost', { timeout: 300_000 }, async () => {
  await using sandbox = await suite.create({ timeout: { idle: 0 } })
  let isOver = false
  const uses = [
    async () => assert.equal((await sandbox.runCode('echo code', 'shell')).stdout, 'code\n'),
    async () => assert.equal((await sandbox.exec.run('echo command')).stdout, 'command\n'),
    () =>
      sandbox.files.batchWrite(
        [1, 2, 3].map((n) => ({ operation: 'write', path: `batch/${n}`, content: `${n}` })),
      ),
    async () => assert.equal(await sandbox.files.write('a', 'b').then(() => sandbox.files.read('a')), 'b'),
  ]
  const working = Promise.all(
    uses.map(async (use) => {
      for (let round = 0; round < 20; round++) await use()
    }),
  ).finally(() => {
    isOver = true
  })
  const disturbing = (async () => {
    while (!isOver) {
      // Another caller may have woken it first, which is not an error.
      await sandbox.pause().catch(refusedFor('pause'))
      await sleep(Math.random() * 10)
      await sandbox.resume().catch(refusedFor('resume'))
      await sleep(Math.random() * 10)
    }
  })()
  await Promise.all([working, disturbing])
  assert.ok((await movesOf(server, sandbox.id)).filter((type) => type === 'paused').length > 3)
})

test('twenty different calls at once to a suspended sandbox share one wake', async () => {
  await using sandbox = await suite.create()
  await sandbox.files.write('index.html', 'served')
  await sandbox.exec.spawn('python3 -m http.server --bind 127.0.0.1 8000')
  await until(async () => (await sandbox.ports()).some(({ port }) => port === 8000))
  const url = await sandbox.getUrl({ port: 8000 })
  const { id: process } = await sandbox.exec.spawn('sleep 1000')
  const uses: Record<string, () => Promise<unknown>> = {
    exec: () => sandbox.exec.run('true'),
    read: () => sandbox.files.read('index.html'),
    write: () => sandbox.files.write('other', 'x'),
    code: () => sandbox.runCode('true', 'shell'),
    preview: async () => assert.equal(await (await fetch(url)).text(), 'served'),
    attach: async () => (await sandbox.exec.attach(process)).close(),
    terminal: async () => (await sandbox.pty.create()).kill(),
    mixed: () => Promise.all([uses.exec!(), uses.read!(), uses.preview!(), uses.attach!()]),
  }
  for (const [name, use] of Object.entries(uses)) {
    for (const [stop, event] of [
      ['pause', 'resumed'],
      ['hibernate', 'woken'],
    ] as const) {
      await sandbox[stop]()
      const before = await eventsOf(server, sandbox.id)
      await Promise.all(Array.from({ length: 20 }, use))
      const moves = (await eventsOf(server, sandbox.id))
        .slice(before.length)
        .filter(({ type }) => !type.includes('.'))
      assert.deepEqual(
        moves.map(({ type, data }) => [type, data.auto]),
        [[event, true]],
        `${name} after ${stop}`,
      )
    }
  }
})

test('only the answers to calls that woke the sandbox say so', async () => {
  await using sandbox = await suite.create()
  assert.equal((await sandbox.exec.run('true')).autoResumed, false)
  await sandbox.pause()
  assert.equal((await sandbox.exec.run('true')).autoResumed, true)
  assert.equal((await sandbox.exec.run('true')).autoResumed, false)
  await sandbox.hibernate()
  assert.equal((await sandbox.runCode('echo 1', 'shell')).autoResumed, true)
  await sandbox.hibernate()
  assert.equal((await sandbox.exec.spawn('true')).autoResumed, true)
  await sandbox.hibernate()
  assert.equal((await sandbox.runCommand('true', { background: true })).autoResumed, true)
  await sandbox.files.write('a', 'b')
  await sandbox.hibernate()
  const read = await server.fetch(`/v1/sandboxes/${sandbox.id}/files?path=a`)
  assert.deepEqual([read.headers.get('islet-auto-resumed'), await read.text()], ['true', 'b'])
  const again = await server.fetch(`/v1/sandboxes/${sandbox.id}/files?path=a`)
  assert.deepEqual([again.headers.get('islet-auto-resumed'), await again.text()], [null, 'b'])
})

test('neither reading nor changing the record of a suspended sandbox wakes it', async () => {
  await using sandbox = await suite.create({ name: 'looked-at' })
  for (const stop of ['pause', 'hibernate'] as const) {
    const { status } = await sandbox[stop]()
    await Promise.all([
      sandbox.getInfo(),
      sandbox.isRunning(),
      sandbox.usage(),
      sandbox.exec.list(),
      sandbox.listPreviewURLs(),
      islet.sandboxes.list({ name: 'looked-at' }),
      eventsOf(server, sandbox.id),
      sandbox.getToken({ expiresIn: '1m' }),
      sandbox.setTimeout({ idle: '1h' }),
      sandbox.update({ metadata: { a: 1 }, env: { LATER: stop } }),
    ])
    assert.equal((await sandbox.getInfo()).status, status)
    assert.equal(await say(sandbox, 'echo $LATER'), stop)
  }
})

test('a sandbox whose processes died while it was suspended starts again from its files', async () => {
  for (const stop of ['pause', 'hibernate'] as const) {
    await using sandbox = await suite.create()
    await sandbox.files.write('kept', 'still here')
    const first = await firstProcessOf(sandbox)
    const lost = await sandbox.exec.spawn('sleep 1000')
    await sandbox[stop]()
    process.kill(first, 'SIGKILL')
    const answers = await Promise.all(Array.from({ length: 20 }, () => sandbox.exec.run('cat kept')))
    for (const { stdout } of answers) assert.equal(stdout, 'still here', stop)
    assert.ok(answers.some(({ autoResumed }) => autoResumed))
    assert.equal((await sandbox.exec.get(lost.id)).status, 'lost')
    const woken = (await eventsOf(server, sandbox.id)).filter(({ data }) => data.auto)
    assert.deepEqual(
      woken.map(({ data }) => data.memory),
      [false],
    )
  }
})

test('a suspended sandbox is deleted, and a wake and a delete at once end in stopped', async () => {
  for (let round = 0; round < 5; round++) {
    const sandbox = await suite.create()
    await sandbox.hibernate()
    const used = sandbox.exec.run('true').catch(({ code }) => code)
    await Promise.all([sandbox.kill(), sandbox.wake().catch(() => {}), used])
    assert.equal((await sandbox.getInfo()).status, 'stopped')
    const outcome = await used
    const isTold = ['invalid_state', 'sandbox_lost'].includes(outcome as unknown as string)
    assert.ok(isTold || (outcome as { exitCode?: number }).exitCode === 0, String(outcome))
    assert.equal((await movesOf(server, sandbox.id)).at(-1), 'stopped')
  }
})

function refusedFor(verb: Verb): (error: unknown) => void {
  return (error) => assert.ok(hasCode(error, 'invalid_state'), `${verb}: ${error}`)
}

async function inState(status: keyof typeof INTO): Promise<[Sandbox, checkpoint: string]> {
  const sandbox = await suite.create({ timeout: { idle: 0 } })
  await sandbox.files.write('mark', 'here')
  const { id } = await sandbox.createCheckpoint('mark')
  await INTO[status](sandbox)
  await becomes(sandbox, status)
  return [sandbox, id]
}

async function assertStays(sandbox: Sandbox, verb: Verb, checkpoint: string): Promise<void> {
  const before = [await sandbox.getInfo(), await eventsOf(server, sandbox.id)]
  const answer = await tell(sandbox.id, verb, checkpoint)
  assert.equal(answer.status, 200, `${sandbox.status} ${verb}`)
  assert.equal(((await answer.json()) as SandboxInfo).status, sandbox.status)
  assert.deepEqual([await sandbox.getInfo(), await eventsOf(server, sandbox.id)], before)
}

async function assertRefused(sandbox: Sandbox, verb: Verb, checkpoint: string): Promise<void> {
  const before = [await sandbox.getInfo(), await eventsOf(server, sandbox.id)]
  const { status } = sandbox
  const answer = await tell(sandbox.id, verb, checkpoint)
  const { code, message, details } = await errorIn(answer)
  assert.deepEqual([answer.status, code], [409, 'invalid_state'], `${status} ${verb}: ${message}`)
  assert.deepEqual([details?.status, details?.wanted], [status, TARGETS[verb]], `${status} ${verb}`)
  assert.ok(message.includes(status) && message.includes(TARGETS[verb]), message)
  assert.deepEqual([await sandbox.getInfo(), await eventsOf(server, sandbox.id)], before)
}

function tell(id: string, verb: Verb, checkpoint: string): Promise<Response> {
  const path = `/v1/sandboxes/${id}`
  if (verb === 'delete') return server.fetch(path, { method: 'DELETE' })
  if (verb === 'restore') return server.fetch(`${path}/checkpoints/${checkpoint}/restore`, { method: 'POST' })
  if (verb === 'wake') return server.post(`${path}/wake`, {})
  return server.fetch(`${path}/${verb}`, { method: 'POST' })
}
