import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type ExecLine, execLine, type Sandbox, type SandboxPage } from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { errorOf, settled, startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

describe('a streamed command', () => {
  let api: TestApi
  let made: Sandbox
  let path: string
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
    path = `/v1/sandboxes/${made.id}/exec`
  })
  after(() => api[Symbol.asyncDispose]())

  const stream = (body: object, init?: RequestInit, at = path) =>
    api.call('POST', at, { stream: true, ...body }, init)
  const linesOf = async (response: Response): Promise<ExecLine[]> => {
    const text = await response.text()
    return text.split('\n').flatMap((line) => (line === '' ? [] : [execLine.parse(JSON.parse(line))]))
  }
  const run = async (command: string, more: object = {}) => linesOf(await stream({ command, ...more }))
  /** The bytes of a channel. */
  const printed = (lines: ExecLine[], channel: 'stdout' | 'stderr') =>
    Buffer.concat(
      lines.flatMap((line) =>
        line.type === channel ? [Buffer.from(line.data, line.encoding ?? 'utf8')] : [],
      ),
    )

  it('is answered by its start, its output as it comes, and its exit with all that a result has but the texts', async () => {
    const gate = makeGate(made)
    const response = await stream({ command: 'echo one; cat gate; echo two >&2; exit 3' })
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/x-ndjson'])
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('one')) text += (await reader.read()).value
    await (await gate.reached()).open()
    for (let more = await reader.read(); !more.done; more = await reader.read()) text += more.value
    const lines = text
      .trim()
      .split('\n')
      .map((line) => execLine.parse(JSON.parse(line)))
    const [start] = lines
    assert.ok(start?.type === 'start')
    const { sandboxId, processId, autoResumed } = start
    assert.deepEqual([sandboxId, autoResumed], [made.id, false])
    const { durationMs, ...exit } = lines.at(-1) as Extract<ExecLine, { type: 'exit' }>
    assert.ok(durationMs > 0)
    assert.deepEqual(exit, {
      ...{
        type: 'exit',
        processId,
        outcome: 'failed',
        exitCode: 3,
        signal: null,
        timedOut: false,
        oom: false,
      },
      ...{ autoResumed: false, truncated: false, droppedBytes: 0 },
    })
    assert.deepEqual(lines.slice(1, -1), [
      { type: 'stdout', data: 'one\n' },
      { type: 'stderr', data: 'two\n' },
    ])
    assert.equal((await api.process(made.id, processId)).result?.exitCode, 3)
  })

  it('never has half a character in a line of text, and what is not text is base64', async () => {
    const slow = String.raw`printf 'a\303'; sleep 0.05; printf '\251\360\237'; sleep 0.05; printf '\230\200b'`
    const text = await run(slow)
    assert.equal(printed(text, 'stdout').toString(), 'aé😀b')
    assert.ok(text.every((line) => line.type !== 'stdout' || line.encoding === undefined))
    const long = await run(`yes € | head -n 100000 | tr -d '\\n'`)
    assert.ok(printed(long, 'stdout').toString() === '€'.repeat(100_000))
    assert.ok(
      long.every((line) => line.type !== 'stdout' || (!line.encoding && line.data.length < 16 * 1024)),
    )
    const bytes = await run(
      String.raw`printf '\377\376ok'; sleep 0.05; printf 'plain'; sleep 0.05; printf '\303'`,
    )
    assert.equal(printed(bytes, 'stdout').toString('latin1'), '\xff\xfeokplain\xc3')
    const encodings = bytes.flatMap((line) => (line.type === 'stdout' ? [line.encoding] : []))
    assert.deepEqual(encodings, ['base64', undefined, 'base64'])
    const forced = await run('echo text', { encoding: 'base64' })
    assert.deepEqual(forced[1], { type: 'stdout', data: 'dGV4dAo=', encoding: 'base64' })
  })

  it('that could not be started is an ordinary error, and one whose sandbox ends is an error line', async () => {
    const error = await errorOf(await stream({ command: ['nothing-of-that-name'] }))
    assert.deepEqual([error.status, error.code], [422, 'command_not_found'])
    const { id } = await api.createSandbox()
    const response = await stream({ command: 'echo up; sleep 600' }, {}, `/v1/sandboxes/${id}/exec`)
    await api.call('DELETE', `/v1/sandboxes/${id}`)
    const last = (await linesOf(response)).at(-1)
    assert.ok(last?.type === 'error')
    assert.equal(last.error.code, 'sandbox_lost')
  })

  it('takes no limit, and an open stdin only if it is streamed', async () => {
    for (const body of [
      { stream: true, maxOutputBytes: 10 },
      { stdin: true },
      { stream: false, stdin: true },
      { stream: true, stdin: true, stdinEncoding: 'utf8' },
      { stream: true, stdin: false },
      { stream: 'yes' },
    ]) {
      for (const at of [path, '/v1/run']) {
        const error = await errorOf(await api.call('POST', at, { command: 'true', ...body }))
        assert.deepEqual([error.status, error.code], [400, 'bad_request'], JSON.stringify(body))
      }
    }
  })

  it('reads its stdin from the body, or from what is written to it until that is closed', async () => {
    assert.equal(printed(await run('cat', { stdin: 'given' }), 'stdout').toString(), 'given')
    const response = await stream({ command: 'cat; exit 5', stdin: true })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = (await reader.read()).value!
    const { processId } = JSON.parse(text.split('\n')[0]!) as { processId: string }
    const stdin = `/v1/sandboxes/${made.id}/processes/${processId}/stdin`
    await api.call('POST', stdin, { data: 'first ' })
    while (!text.includes('first')) text += (await reader.read()).value
    await api.call('POST', stdin, { data: 'c2Vjb25k', encoding: 'base64', end: true })
    for (let more = await reader.read(); !more.done; more = await reader.read()) text += more.value
    assert.match(text, /second.*"exitCode":5/s)
  })

  it('is ended by its timeout', async () => {
    const exit = (await run('sleep 600', { timeout: 100 })).at(-1)
    assert.ok(exit?.type === 'exit')
    assert.deepEqual([exit.exitCode, exit.timedOut], [124, true])
  })

  it('is killed when its client goes away', async () => {
    const gate = makeGate(made, 'leaving')
    const controller = new AbortController()
    const response = await stream({ command: 'echo $$ > leaving; sleep 600' }, { signal: controller.signal })
    const pid = Number(await gate.passed())
    controller.abort()
    await assert.rejects(response.text(), { name: 'AbortError' })
    await until(() => !existsSync(`/proc/${pid}`))
    const list = await api.call('GET', `/v1/sandboxes/${made.id}/processes?limit=1`)
    const [last] = ((await list.json()) as { processes: { id: string }[] }).processes
    await until(async () => (await api.process(made.id, last!.id)).jobStatus === 'cancelled')
    assert.doesNotMatch(api.logged.join(''), /"level":"error"/)
  })

  it('waits for a client that does not read, which misses nothing', async () => {
    const bytes = 64 * 1024 * 1024
    const command = `head -c ${bytes} /dev/zero | tr '\\0' x; touch printed`
    const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
    const sent = request(`${api.url}${path}`, { method: 'POST', headers })
    sent.end(JSON.stringify({ command, stream: true }))
    const response = await new Promise<import('node:http').IncomingMessage>((resolve) =>
      sent.once('response', resolve),
    )
    response.pause()
    const list = await api.call('GET', `/v1/sandboxes/${made.id}/processes?limit=1`)
    const [last] = ((await list.json()) as { processes: { id: string }[] }).processes
    const written = await settled(async () => (await api.process(made.id, last!.id)).outputBytes)
    assert.ok(written > 0 && written < bytes / 2, `${written} bytes were printed`)
    assert.ok(!existsSync(join(made.workdir, 'printed')))
    let text = ''
    let got = 0
    for await (const chunk of response.setEncoding('utf8')) {
      const lines = (text + chunk).split('\n')
      text = lines.pop()!
      for (const line of lines) {
        const told = JSON.parse(line) as ExecLine
        if (told.type === 'stdout') got += told.data.length
      }
    }
    assert.equal(got, bytes)
    assert.ok(existsSync(join(made.workdir, 'printed')))
  })

  describe('in a sandbox of its own', () => {
    const living = async () => {
      const page = (await (await api.call('GET', '/v1/sandboxes')).json()) as SandboxPage
      return page.sandboxes.map(({ id }) => id)
    }

    it('removes the sandbox before its exit is told', async () => {
      const lines = await linesOf(await stream({ command: 'echo "$ISLET_SANDBOX_ID"' }, {}, '/v1/run'))
      const [start] = lines
      assert.ok(start?.type === 'start' && lines.at(-1)?.type === 'exit')
      assert.equal(printed(lines, 'stdout').toString().trim(), start.sandboxId)
      assert.deepEqual(await living(), [made.id])
    })

    it('leaves none when its client goes away or the command could not be started', async () => {
      const controller = new AbortController()
      const response = await stream({ command: 'sleep 600' }, { signal: controller.signal }, '/v1/run')
      assert.equal((await living()).length, 2)
      controller.abort()
      await assert.rejects(response.text(), { name: 'AbortError' })
      await until(async () => (await living()).length === 1)
      // While the sandbox is being made.
      const early = new AbortController()
      const call = stream({ command: 'sleep 600' }, { signal: early.signal }, '/v1/run')
      setImmediate(() => early.abort())
      await assert.rejects(call, { name: 'AbortError' })
      const refused = await stream({ command: ['nothing-of-that-name'] }, {}, '/v1/run')
      assert.equal((await errorOf(refused)).code, 'command_not_found')
      await until(async () => (await living()).length === 1)
      assert.equal(await settled(async () => (await living()).length), 1)
    })
  })
})
