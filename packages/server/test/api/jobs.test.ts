import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type ProcessInfo, processInfo, processList, type Sandbox, type StartProcess } from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { Client } from '../support/client.ts'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

describe('a background process as a job', () => {
  let api: TestApi
  let made: Sandbox
  let processes: string
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
    processes = `/v1/sandboxes/${made.id}/processes`
  })
  after(() => api[Symbol.asyncDispose]())

  const start = (command: StartProcess['command'], more: Partial<StartProcess> = {}) =>
    api.start(made.id, { command, ...more })
  const ended = async ({ id }: ProcessInfo) =>
    processInfo.parse(await (await api.call('GET', `${processes}/${id}?wait=60000`)).json())
  const signal = (id: string, name: string) => api.call('POST', `${processes}/${id}/signal`, { signal: name })
  const attach = (id: string) => Client.open(`${api.url.replace('http', 'ws')}${processes}/${id}/attach`)

  it('is running, then completed or failed by its exit code', async () => {
    const waiting = await start('cat', { stdin: true })
    assert.deepEqual([waiting.jobStatus, waiting.outcome, waiting.reason], ['running', null, null])
    await api.call('POST', `${processes}/${waiting.id}/stdin`, { end: true })
    assert.equal((await ended(waiting)).jobStatus, 'completed')
    assert.equal((await ended(await start('exit 3'))).jobStatus, 'failed')
    assert.equal((await ended(await start('kill -TERM $$'))).jobStatus, 'failed')
    const late = await ended(await start('sleep 600', { timeout: 50 }))
    assert.deepEqual([late.jobStatus, late.outcome, late.result?.exitCode], ['failed', 'timeout', 124])
  })

  it('is listed by its status or outcome, page by page', async () => {
    const { id } = await api.createSandbox()
    const all = `/v1/sandboxes/${id}/processes`
    const list = async (query: string) => processList.parse(await (await api.call('GET', all + query)).json())
    const ids: string[] = []
    for (const [command, timeout] of [['true'], ['false'], ['sleep 600', 50], ['exit 0']] as const) {
      const job = await api.start(id, { command, timeout })
      await api.call('GET', `${all}/${job.id}?wait=60000`)
      ids.unshift(job.id)
    }
    ids.unshift((await api.start(id, { command: 'sleep 600' })).id)
    const [running, last, late, failed, first] = ids
    const listed = async (query: string) => {
      const { processes, total } = await list(query)
      return [processes.map((process) => process.id), total]
    }
    assert.deepEqual(await listed(''), [ids, 5])
    assert.deepEqual(await listed('?limit=2&offset=1'), [[last, late], 5])
    assert.deepEqual(await listed('?offset=9'), [[], 5])
    assert.deepEqual(await listed('?status=running'), [[running], 1])
    assert.deepEqual(await listed('?status=exited&limit=1'), [[last], 4])
    assert.deepEqual(await listed('?status=completed'), [[last, first], 2])
    assert.deepEqual(await listed('?status=timeout'), [[late], 1])
    assert.deepEqual(await listed('?status=failed'), [[failed], 1])
    assert.deepEqual(await listed('?status=cancelled'), [[], 0])
    for (const query of ['?status=queued', '?offset=-1', '?offset=1000001', '?limit=0'])
      assert.equal((await errorOf(await api.call('GET', all + query))).code, 'bad_request')
    const killed = await api.call('DELETE', `${all}/${running}`)
    assert.equal(processInfo.parse(await killed.json()).outcome, 'cancelled')
    assert.deepEqual(await listed('?status=cancelled'), [[running], 1])
  })

  it('is cancelled when it was killed on request', async () => {
    const job = await start('sleep 600')
    const response = await api.call('DELETE', `${processes}/${job.id}`)
    const killed = processInfo.parse(await response.json())
    assert.deepEqual([killed.jobStatus, killed.result?.signal], ['cancelled', 'SIGKILL'])
  })

  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGKILL']) {
    it(`is cancelled when ${name} was sent and ended it`, async () => {
      const job = await start(['sleep', '600'])
      await signal(job.id, name)
      const { jobStatus, result } = await ended(job)
      assert.deepEqual([jobStatus, result?.signal], ['cancelled', name])
    })
  }

  it('is what it made of itself when it caught the signal', async () => {
    const catching = async (code: string) => {
      const job = await start(`trap 'exit ${code}' TERM; echo set; while :; do sleep 0.01; done`)
      await until(async () => (await api.process(made.id, job.id)).outputBytes > 0)
      await signal(job.id, 'TERM')
      return (await ended(job)).jobStatus
    }
    assert.equal(await catching('0'), 'completed')
    assert.equal(await catching('7'), 'failed')
    assert.equal(await catching('143'), 'cancelled')
  })

  it('is not cancelled by a signal that only tells it something', async () => {
    const job = await start(['sleep', '600'])
    await signal(job.id, 'USR1')
    const { jobStatus, result } = await ended(job)
    assert.deepEqual([jobStatus, result?.signal], ['failed', 'SIGUSR1'])
  })

  it('is cancelled when the caller of an exec went away', async () => {
    const gate = makeGate(made)
    const abort = new AbortController()
    const body = { command: 'echo > gate; sleep 600' }
    const call = api.call('POST', `/v1/sandboxes/${made.id}/exec`, body, { signal: abort.signal })
    await gate.passed()
    abort.abort()
    await assert.rejects(call, { name: 'AbortError' })
    const list = await api.call('GET', `${processes}?limit=1`)
    const [last] = ((await list.json()) as { processes: ProcessInfo[] }).processes
    assert.equal((await ended(last!)).jobStatus, 'cancelled')
  })

  it('is killed with all it started when its last client has been away for too long', async () => {
    const gate = makeGate(made, 'children')
    const command = 'sleep 600 & echo $$ $! > children; wait'
    const job = await start(command, { maxRunAfterDisconnect: 100 })
    assert.equal(job.maxRunAfterDisconnectMs, 100)
    const pids = (await gate.passed()).split(' ').map(Number)
    const [first, second] = [await attach(job.id), await attach(job.id)]
    first.socket.close()
    await first.closed
    assert.equal((await api.process(made.id, job.id)).status, 'running')
    second.socket.close()
    const { jobStatus, result } = await ended(job)
    assert.deepEqual([jobStatus, result?.signal], ['cancelled', 'SIGKILL'])
    await until(() => pids.every((pid) => !isAlive(pid)))
  })

  it('keeps running if a client returns in time, or if it never had one', async () => {
    const kept = await start('sleep 600', { maxRunAfterDisconnect: '10m' })
    const left = await attach(kept.id)
    left.socket.close()
    await left.closed
    const back = await attach(kept.id)
    const alone = await start('sleep 600', { maxRunAfterDisconnect: 0 })
    const atOnce = await start('sleep 600', { maxRunAfterDisconnect: 0 })
    const client = await attach(atOnce.id)
    client.socket.close()
    assert.equal((await ended(atOnce)).jobStatus, 'cancelled')
    // Had it counted for these, they would have ended before.
    assert.equal((await api.process(made.id, alone.id)).jobStatus, 'running')
    assert.equal((await api.process(made.id, kept.id)).jobStatus, 'running')
    back.socket.close()
  })
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
