import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  execResult,
  type ProcessInfo,
  processInfo,
  processOutput,
  runResult,
  type Sandbox,
} from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

describe('commands', () => {
  let api: TestApi
  let made: Sandbox
  let sandbox: string
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox({ env: { GREETING: 'hello' } })
    sandbox = `/v1/sandboxes/${made.id}`
  })
  after(() => api[Symbol.asyncDispose]())

  const exec = (body: object, init?: RequestInit) => api.call('POST', `${sandbox}/exec`, body, init)
  const resultOf = async (response: Response) => execResult.parse(await response.json())
  const start = (body: { command: string | string[]; stdin?: boolean; terminal?: object }) =>
    api.start(made.id, body as never)
  const ended = async (id: string) =>
    processInfo.parse(await (await api.call('GET', `${sandbox}/processes/${id}?wait=60000`)).json())

  it('run to their end, where and as they are told', async () => {
    const response = await exec({
      command: 'pwd; echo "$GREETING $NAME"; cat; echo oops >&2; exit 3',
      env: { NAME: 'you' },
      stdin: 'aW4=',
      stdinEncoding: 'base64',
      timeout: '2m',
    })
    assert.equal(response.status, 200)
    const { stdout, stderr, exitCode, timedOut, outcome } = await resultOf(response)
    assert.deepEqual([exitCode, timedOut, outcome, stderr], [3, false, 'failed', 'oops\n'])
    assert.equal(stdout, `${made.workdir}\nhello you\nin`)
  })

  it('are ended by their timeout', async () => {
    const result = await resultOf(await exec({ command: 'echo first; sleep 600', timeout: 200 }))
    assert.deepEqual([result.timedOut, result.exitCode, result.stdout], [true, 124, 'first\n'])
    assert.equal(result.outcome, 'timeout')
  })

  it('that never ran are errors', async () => {
    const cases: [object, string][] = [
      [{ command: ['nothing-of-that-name'] }, 'command_not_found'],
      [{ command: [made.workdir] }, 'command_not_executable'],
      [{ command: 'true', cwd: 'none' }, 'cwd_not_found'],
    ]
    for (const [body, code] of cases) {
      const error = await errorOf(await exec(body))
      assert.deepEqual([error.status, error.code], [422, code])
    }
  })

  it('are killed when their client goes away', async () => {
    const gate = makeGate(made)
    const controller = new AbortController()
    const running = exec({ command: 'sleep 600 & echo $$ $! > gate; wait' }, { signal: controller.signal })
    const pids = (await gate.passed()).split(' ').map(Number)
    controller.abort()
    await assert.rejects(running, { name: 'AbortError' })
    await until(() => pids.every((pid) => !isAlive(pid)))
    const list = await api.call('GET', `${sandbox}/processes?limit=1`)
    const [last] = ((await list.json()) as { processes: ProcessInfo[] }).processes
    await until(async () => (await api.process(made.id, last!.id)).status === 'exited')
    assert.equal((await api.process(made.id, last!.id)).result?.signal, 'SIGKILL')
    assert.doesNotMatch(api.logged.join(''), /"level":"error"/)
  })

  it('run in a sandbox of their own, which goes with them', async () => {
    const response = await api.call('POST', '/v1/run', { command: 'echo once; pwd' })
    const { stdout, sandboxId } = runResult.parse(await response.json())
    assert.match(stdout, /^once\n/)
    assert.doesNotMatch(stdout, new RegExp(made.workdir))
    const { status, timeouts } = (await (
      await api.call('GET', `/v1/sandboxes/${sandboxId}`)
    ).json()) as Sandbox
    assert.equal(status, 'stopped')
    assert.equal(timeouts.onIdle, 'kill', 'should its server die, it goes by itself')
  })

  it('start, are listed, found, written to and killed', async () => {
    const { id } = await start({ command: ['cat'], stdin: true })
    const at = `${sandbox}/processes/${id}`
    const list = await api.call('GET', `${sandbox}/processes?status=running`)
    const { processes } = (await list.json()) as { processes: ProcessInfo[] }
    assert.deepEqual(
      processes.map((found) => found.id),
      [id],
    )
    assert.equal(processInfo.parse(await (await api.call('GET', `${at}?wait=10`)).json()).status, 'running')
    assert.equal((await api.call('POST', `${at}/stdin`, { data: 'hello ' })).status, 204)
    assert.equal((await api.call('POST', `${at}/stdin`, { data: 'AP8=', encoding: 'base64' })).status, 204)
    await until(async () => (await api.process(made.id, id)).outputBytes === 8)
    const output = processOutput.parse(await (await api.call('GET', `${at}/output?encoding=base64`)).json())
    assert.deepEqual(Buffer.from(output.stdout, 'base64'), Buffer.from('hello \0\xff', 'latin1'))
    const killed = processInfo.parse(await (await api.call('DELETE', at)).json())
    assert.deepEqual([killed.status, killed.result?.signal], ['exited', 'SIGKILL'])
    assert.equal((await errorOf(await api.call('POST', `${at}/stdin`, { data: 'x' }))).code, 'invalid_state')
  })

  it('end when their stdin does', async () => {
    const { id } = await start({ command: ['wc', '-c'], stdin: true })
    await api.call('POST', `${sandbox}/processes/${id}/stdin`, { data: 'abc', end: true })
    assert.equal((await ended(id)).result?.exitCode, 0)
    const output = await api.call('GET', `${sandbox}/processes/${id}/output`)
    assert.equal(processOutput.parse(await output.json()).stdout, '3\n')
  })

  it('take signals by name and number, SIGKILL unless told', async () => {
    const signals = [15, 'SIGTERM', 'TERM', 'SIGRTMIN+1', 10]
    const script =
      'for s in TERM RTMIN+1 USR1; do trap "echo $s" $s; done; echo ready; while :; do sleep 0.01; done'
    const { id } = await start({ command: ['bash', '-c', script] })
    const lines = async () => {
      const output = await api.call('GET', `${sandbox}/processes/${id}/output`)
      return processOutput
        .parse(await output.json())
        .stdout.split('\n')
        .filter(Boolean)
    }
    const send = (body?: object) => api.call('POST', `${sandbox}/processes/${id}/signal`, body)
    await until(async () => (await lines()).length === 1)
    for (const [index, signal] of signals.entries()) {
      assert.equal((await send({ signal, group: false })).status, 204)
      await until(async () => (await lines()).length === index + 2)
    }
    assert.deepEqual(await lines(), ['ready', 'TERM', 'TERM', 'TERM', 'RTMIN+1', 'USR1'])
    for (const signal of [0, 65, 'SIGNOPE', 'sigterm', 'RTMIN+99', '']) {
      assert.equal((await send({ signal })).status, 400, String(signal))
    }
    assert.equal((await send()).status, 204)
    assert.equal((await ended(id)).result?.signal, 'SIGKILL')
  })

  it('refuse what is not base64', async () => {
    const { id } = await start({ command: ['cat'], stdin: true })
    const body = { data: '§', encoding: 'base64' }
    const response = await api.call('POST', `${sandbox}/processes/${id}/stdin`, body)
    assert.equal((await errorOf(response)).code, 'bad_request')
  })

  it('have a terminal or say that they have none', async () => {
    const size = { cols: 100, rows: 50 }
    const { id } = await start({ command: 'read line; stty size', terminal: { cols: 80, rows: 24 } })
    const at = `${sandbox}/processes/${id}`
    assert.equal((await api.call('POST', `${at}/resize`, size)).status, 204)
    assert.equal((await api.call('POST', `${at}/stdin`, { data: '\r' })).status, 204)
    await ended(id)
    const output = processOutput.parse(await (await api.call('GET', `${at}/output`)).json())
    assert.match(output.stdout, /50 100/)
    const plain = await start({ command: ['cat'] })
    const refused = await errorOf(await api.call('POST', `${sandbox}/processes/${plain.id}/resize`, size))
    assert.equal(refused.status, 409)
  })

  it('say that attaching is done by WebSocket', async () => {
    const { id } = await start({ command: ['true'] })
    const error = await errorOf(await api.call('GET', `${sandbox}/processes/${id}/attach`))
    assert.equal(error.status, 400)
    assert.match(error.hint ?? '', /websocket/)
  })
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
