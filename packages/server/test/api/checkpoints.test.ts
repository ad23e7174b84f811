import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type {
  CheckpointInfo,
  CheckpointPage,
  CreatedSandbox,
  EventPage,
  Forks,
  RestoredSandbox,
  Sandbox,
} from '@islet/contract'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

let api: TestApi
before(async () => {
  api = await startTestApi({ maxSandboxes: 40 })
})
after(() => api[Symbol.asyncDispose]())

const of = (id: string, rest = '') => `/v1/sandboxes/${id}${rest}`
const from = (id: string) => `/v1/checkpoints/${id}/sandboxes`

async function made<T>(method: string, path: string, body?: unknown, init?: RequestInit): Promise<T> {
  const response = await api.call(method, path, body, init)
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`)
  return (await response.json()) as T
}

const checkpoint = (id: string, name: string) =>
  made<CheckpointInfo>('POST', of(id, '/checkpoints'), { name })
const restore = (id: string, cid: string) =>
  made<RestoredSandbox>('POST', of(id, `/checkpoints/${cid}/restore`))

async function sh(id: string, command: string): Promise<string> {
  const { stdout, exitCode } = await made<{ stdout: string; exitCode: number }>('POST', of(id, '/exec'), {
    command,
  })
  assert.equal(exitCode, 0, command)
  return stdout
}

test('a restore brings files, env, store and services of that moment back, and nothing later', async () => {
  const { id } = await api.createSandbox({ env: { A: '1', B: '1' } })
  await sh(id, 'mkdir -p d/e && echo one > d/e/file && ln -s file d/e/link && chmod 640 d/e/file')
  await api.call('PUT', of(id, '/store/key'), { value: { n: 1 } })
  await made('POST', of(id, '/services'), { name: 'nap', start: 'sleep 600' })
  const { id: cid } = await checkpoint(id, 'then')
  await sh(id, 'rm -r d && echo late > late')
  await made('PATCH', of(id), { env: { A: '2', B: null, C: '3' } })
  await api.call('PUT', of(id, '/store/key'), { value: { n: 2 } })
  await api.call('PUT', of(id, '/store/late'), { value: 1 })
  await api.call('DELETE', of(id, '/services/nap'))
  await made('POST', of(id, '/services'), { name: 'late', start: 'sleep 600' })
  const { sandbox, services } = await restore(id, cid)
  assert.deepEqual([sandbox.id, sandbox.status], [id, 'running'])
  assert.deepEqual(services, [{ name: 'nap', outcome: 'started', reason: null }])
  assert.equal(await sh(id, 'cat d/e/link; stat -c %a d/e/file; ls; echo $A$B$C'), 'one\n640\nd\n11\n')
  const { keys } = await made<{ keys: string[] }>('GET', of(id, '/store'))
  assert.deepEqual(keys, ['key'])
  assert.deepEqual((await made<{ value: unknown }>('GET', of(id, '/store/key'))).value, { n: 1 })
})

test('a restore ends running processes, and calls that wait for them are answered', async () => {
  const { id } = await api.createSandbox()
  const { id: cid } = await checkpoint(id, 'quiet')
  const running = api.call('POST', of(id, '/exec'), { command: 'touch running; sleep 600' })
  await until(async () => (await sh(id, 'ls')) === 'running\n')
  await restore(id, cid)
  const answer = await running
  const body = (await answer.json()) as { exitCode?: number; error?: { code: string } }
  assert.ok(body.exitCode !== 0 || body.error, JSON.stringify(body))
  assert.equal(await sh(id, 'ls'), '')
})

test('keys that expired since stay so, in a restore and in a copy', async () => {
  const { id } = await api.createSandbox()
  await api.call('PUT', of(id, '/store/short'), { value: 1, ttl_seconds: 1 })
  await api.call('PUT', of(id, '/store/long'), { value: 1, ttl_seconds: 3600 })
  const { id: cid } = await checkpoint(id, 'with-both')
  await until(async () => (await api.call('GET', of(id, '/store/short'))).status === 404)
  await restore(id, cid)
  const copy = await made<CreatedSandbox>('POST', from(cid), {})
  for (const each of [id, copy.id])
    assert.deepEqual((await made<{ keys: string[] }>('GET', of(each, '/store'))).keys, ['long'])
  const expires = async (each: string) =>
    (await made<{ expires_at: string }>('GET', of(each, '/store/long'))).expires_at
  assert.equal(await expires(copy.id), await expires(id))
})

test('names are unique in a sandbox, and free again once deleted', async () => {
  const { id } = await api.createSandbox()
  const other = await api.createSandbox()
  const first = await checkpoint(id, 'same name')
  await checkpoint(other.id, 'same name')
  const taken = await errorOf(await api.call('POST', of(id, '/checkpoints'), { name: 'same name' }))
  assert.deepEqual([taken.status, taken.code, taken.details], [409, 'conflict', { checkpointId: first.id }])
  const many = await Promise.all(
    Array.from({ length: 5 }, () => api.call('POST', of(id, '/checkpoints'), { name: 'race' })),
  )
  assert.deepEqual(many.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
  assert.equal((await api.call('DELETE', of(id, `/checkpoints/${first.id}`))).status, 204)
  assert.equal((await errorOf(await api.call('DELETE', of(id, `/checkpoints/${first.id}`)))).status, 404)
  await checkpoint(id, 'same name')
  for (const name of ['', 'a\nb', 'x'.repeat(129)])
    assert.equal((await api.call('POST', of(id, '/checkpoints'), { name })).status, 400)
})

test('a checkpoint is of its own sandbox alone, and outlives it', async () => {
  const { id } = await api.createSandbox()
  const other = await api.createSandbox()
  const { id: cid } = await checkpoint(id, 'mine')
  for (const [method, rest] of [
    ['POST', '/restore'],
    ['DELETE', ''],
  ] as const) {
    const wrong = await errorOf(await api.call(method, of(other.id, `/checkpoints/${cid}${rest}`)))
    assert.deepEqual([wrong.status, wrong.code], [404, 'checkpoint_not_found'])
  }
  await api.call('DELETE', of(id))
  const list = await made<{ checkpoints: CheckpointInfo[] }>('GET', of(id, '/checkpoints'))
  assert.deepEqual(
    list.checkpoints.map((each) => each.id),
    [cid],
  )
  await checkpoint(other.id, 'mine')
  const { id: newest } = await checkpoint(other.id, 'second')
  const page = (query: string) => made<CheckpointPage>('GET', `/v1/checkpoints?${query}`)
  const all = await page('')
  assert.equal(all.total, all.checkpoints.length)
  assert.equal(all.checkpoints[0]!.id, newest)
  assert.deepEqual(
    all.checkpoints.find((each) => each.id === cid),
    list.checkpoints[0],
  )
  const first = await page('name=mine&limit=1')
  assert.deepEqual([first.total, first.checkpoints.map(({ sandboxId }) => sandboxId)], [2, [other.id]])
  const second = await page(`name=mine&limit=1&cursor=${first.cursor}`)
  assert.deepEqual([second.checkpoints.map((each) => each.id), second.cursor], [[cid], undefined])
  assert.equal((await page(`sandbox=${other.id}`)).total, 2)
  for (const query of ['limit=0', 'cursor=x', 'sandbox=x', 'other=1']) {
    assert.equal((await errorOf(await api.call('GET', `/v1/checkpoints?${query}`))).code, 'bad_request')
  }
  const headers = { Authorization: `Bearer ${other.token}` }
  assert.equal(
    (await errorOf(await api.call('GET', '/v1/checkpoints', undefined, { headers }))).code,
    'forbidden',
  )
  assert.equal(
    (await errorOf(await api.call('POST', of(id, '/checkpoints'), { name: 'x' }))).code,
    'invalid_state',
  )
  assert.equal(
    (await errorOf(await api.call('POST', of(id, `/checkpoints/${cid}/restore`)))).code,
    'invalid_state',
  )
  assert.equal((await made<CreatedSandbox>('POST', from(cid), {})).origin?.id, cid)
  assert.equal((await api.call('DELETE', of(id, `/checkpoints/${cid}`))).status, 204)
})

test('a copy inherits missing options and merges env, and sandboxes of a deleted checkpoint keep running', async () => {
  const input = {
    env: { A: '1', B: '1' },
    metadata: { k: 'v' },
    project: 'p',
    timeout: { idle: '9m' },
  } as const
  const { id } = await api.createSandbox({ ...input, storeAccess: true })
  await sh(id, 'echo saved > file')
  const { id: cid } = await checkpoint(id, 'base')
  const same = await made<CreatedSandbox>('POST', from(cid), {})
  assert.deepEqual(
    [same.env, same.metadata, same.project, same.timeouts.idleMs, same.name, same.storeAccess],
    [{ A: '1', B: '1' }, { k: 'v' }, 'p', 540_000, null, true],
  )
  const files = [{ path: 'given', content: 'g' }]
  const given = {
    env: { B: '2', C: '3' },
    metadata: {},
    name: 'n',
    files,
    timeout: { idle: 0 },
    workdir: 'deep',
  }
  const other = await made<CreatedSandbox>('POST', from(cid), given)
  assert.deepEqual(
    [other.env, other.metadata, other.name, other.timeouts.idleMs],
    [{ A: '1', B: '2', C: '3' }, {}, 'n', 0],
  )
  const { id: second } = await checkpoint(same.id, 'of a copy')
  const deleting = api.call('DELETE', of(id, `/checkpoints/${cid}`))
  const racing = await api.call('POST', from(cid), {})
  assert.equal((await deleting).status, 204)
  if (racing.ok) assert.equal(await sh(((await racing.json()) as CreatedSandbox).id, 'cat file'), 'saved\n')
  else assert.ok([404, 409].includes(racing.status))
  await api.call('DELETE', of(id))
  await restore(same.id, second)
  assert.equal(await sh(same.id, 'cat file'), 'saved\n')
  assert.equal(await sh(other.id, 'cat given'), 'g')
})

test('the same Idempotency-Key makes one copy, also when the checkpoint is gone by then', async () => {
  const { id } = await api.createSandbox()
  const { id: cid } = await checkpoint(id, 'base')
  const init = { headers: { 'Idempotency-Key': 'copy-once' } }
  const [first, second] = await Promise.all(
    [1, 2].map(() => made<CreatedSandbox>('POST', from(cid), {}, init)),
  )
  assert.equal(first!.id, second!.id)
  const other = await errorOf(await api.call('POST', from(cid), { name: 'other' }, init))
  assert.equal(other.code, 'idempotency_mismatch')
  await api.call('DELETE', of(id, `/checkpoints/${cid}`))
  assert.equal((await made<CreatedSandbox>('POST', from(cid), {}, init)).id, first!.id)
})

test('a hibernated sandbox is saved and forked without being woken, and restored', async () => {
  const { id } = await api.createSandbox()
  await sh(id, 'echo asleep > file')
  await made('POST', of(id, '/hibernate'))
  const saved = await checkpoint(id, 'asleep')
  assert.equal(saved.frozenMs, 0)
  const { forks } = await made<Forks>('POST', of(id, '/fork'), {})
  assert.equal((await made<CreatedSandbox>('GET', of(id))).status, 'hibernated')
  assert.equal(forks[0]?.ok && (await sh(forks[0].sandbox.id, 'cat file')), 'asleep\n')
  assert.equal((await restore(id, saved.id)).sandbox.status, 'running')
})

test('forks beyond the bound of the server fail one by one, and events tell of all', async () => {
  const full = await startTestApi({ maxSandboxes: 4 })
  try {
    const { id } = await full.createSandbox()
    const answer = await full.call('POST', of(id, '/fork'), { count: 6 })
    const { forks } = (await answer.json()) as Forks
    const failed = forks.flatMap((fork) => (fork.ok ? [] : fork.error.code))
    assert.deepEqual(failed, ['too_many_requests', 'too_many_requests', 'too_many_requests'])
    const events = (await (await full.call('GET', of(id, '/events?types=forked'))).json()) as EventPage
    const data = events.events[0]?.data as { forks: string[]; failed: number }
    assert.deepEqual([data.forks.length, data.failed], [3, 3])
  } finally {
    await full[Symbol.asyncDispose]()
  }
})

test('a fork whose client goes away leaves none', async () => {
  const { id } = await api.createSandbox()
  const forks = async () => {
    const { sandboxes } = await made<{ sandboxes: Sandbox[] }>('GET', '/v1/sandboxes')
    return sandboxes.filter(({ origin }) => origin?.id === id)
  }
  for (const ms of [1, 20, 60]) {
    const controller = new AbortController()
    const forking = api.call('POST', of(id, '/fork'), { count: 3 }, { signal: controller.signal })
    await sleep(ms)
    controller.abort()
    await forking.catch(() => {})
    // The event says that the server had answered before the client went away: the forks it names stay.
    const told = async () => {
      const { events } = await made<EventPage>('GET', of(id, '/events?types=forked'))
      return events.flatMap(({ data }) => data.forks as string[])
    }
    const unexpected = async () => {
      const answered = await told()
      return (await forks()).filter((fork) => !answered.includes(fork.id))
    }
    await until(async () => (await unexpected()).length === 0)
    for (const fork of await forks()) await api.call('DELETE', of(fork.id))
  }
})
