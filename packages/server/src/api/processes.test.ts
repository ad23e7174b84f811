import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  type ErrorBody,
  execResult,
  type ProcessInfo,
  processInfo,
  processOutput,
  runResult,
} from '@islet/contract'
import { startTestApi, type TestApi, until } from './testing.ts'

describe('commands', () => {
  let api: TestApi
  let sandbox: string
  before(async () => {
    api = await startTestApi()
    sandbox = `/v1/sandboxes/${(await api.control.create({})).id}`
  })
  after(() => api[Symbol.asyncDispose]())

  const errorOf = async (response: Response) => ((await response.json()) as ErrorBody).error
  const start = async (body: object) =>
    processInfo.parse(await (await api.call('POST', `${sandbox}/processes`, body)).json())

  it('run to their end, with what the schema made of the input', async () => {
    const response = await api.call('POST', `${sandbox}/exec`, { command: 'echo hi', timeout: '2m' })
    assert.equal(response.status, 200)
    assert.equal(execResult.parse(await response.json()).stdout, 'hi')
    assert.deepEqual(api.processes.execs.at(-1), { command: 'echo hi', timeout: 120_000 })
  })

  it('that never ran are errors', async () => {
    const response = await api.call('POST', `${sandbox}/exec`, { command: 'nothing' })
    assert.equal(response.status, 422)
    assert.equal((await errorOf(response)).code, 'command_not_found')
  })

  it('are told when their client goes away', async () => {
    const controller = new AbortController()
    const before = api.processes.execs.length
    const running = api.call('POST', `${sandbox}/exec`, { command: 'hang' }, { signal: controller.signal })
    await until(() => api.processes.execs.length === before + 1)
    controller.abort()
    await assert.rejects(running, { name: 'AbortError' })
    await until(() => api.processes.aborted === 1)
    assert.doesNotMatch(api.logged.join(''), /"level":"error"/)
  })

  it('run in a sandbox of their own', async () => {
    const response = await api.call('POST', '/v1/run', { command: 'echo once', runtime: 'base' })
    assert.equal(runResult.parse(await response.json()).stdout, 'once')
  })

  it('start, are listed, found, written to, signalled and killed', async () => {
    const { id } = await start({ command: ['cat'], stdin: true })
    const at = `${sandbox}/processes/${id}`
    const list = (await (await api.call('GET', `${sandbox}/processes?status=running`)).json()) as {
      processes: ProcessInfo[]
    }
    assert.ok(list.processes.some((found) => found.id === id))
    assert.equal((await api.call('GET', `${at}?wait=10`)).status, 200)
    assert.equal((await api.call('POST', `${at}/stdin`, { data: 'hello ' })).status, 204)
    assert.equal((await api.call('POST', `${at}/stdin`, { data: 'AP8=', encoding: 'base64' })).status, 204)
    const output = await api.call('GET', `${at}/output?encoding=base64`)
    assert.equal(
      processOutput.parse(await output.json()).stdout,
      Buffer.from('hello \0\xff', 'latin1').toString('base64'),
    )
    const killed = await api.call('DELETE', at)
    assert.equal(processInfo.parse(await killed.json()).status, 'exited')
  })

  it('take signals by name and number, SIGKILL unless told', async () => {
    const { id } = await start({ command: ['cat'] })
    const send = (body?: object) => api.call('POST', `${sandbox}/processes/${id}/signal`, body)
    for (const signal of [15, 'SIGTERM', 'TERM', 'SIGRTMIN+1', undefined])
      assert.equal((await send({ signal })).status, 204)
    assert.equal((await send()).status, 204)
    assert.deepEqual(api.processes.running.get(id)?.signals, [15, 15, 15, 35, 9, 9])
    for (const signal of [0, 65, 'SIGNOPE', 'sigterm', 'RTMIN+99', '']) {
      assert.equal((await send({ signal })).status, 400, String(signal))
    }
  })

  it('refuse what is not base64', async () => {
    const { id } = await start({ command: ['cat'], stdin: true })
    const response = await api.call('POST', `${sandbox}/processes/${id}/stdin`, {
      data: '§',
      encoding: 'base64',
    })
    assert.equal((await errorOf(response)).code, 'bad_request')
  })

  it('have a terminal or say that they have none', async () => {
    const { id } = await start({ command: ['cat'], terminal: { cols: 80, rows: 24 } })
    const size = { cols: 100, rows: 50 }
    assert.equal((await api.call('POST', `${sandbox}/processes/${id}/resize`, size)).status, 204)
    assert.deepEqual(api.processes.running.get(id)?.sizes, [size])
    const plain = await start({ command: ['cat'] })
    assert.equal((await api.call('POST', `${sandbox}/processes/${plain.id}/resize`, size)).status, 409)
  })

  it('say that attaching is done by WebSocket', async () => {
    const { id } = await start({ command: ['cat'] })
    const response = await api.call('GET', `${sandbox}/processes/${id}/attach`)
    assert.equal(response.status, 400)
    assert.match((await errorOf(response)).hint ?? '', /websocket/)
  })
})
