import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  LIMITS,
  newId,
  type OutputUrl,
  type ProcessInfo,
  type Sandbox,
  type SandboxEvent,
} from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { errorOf, settled, startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

describe('URLs of output', () => {
  let api: TestApi
  let made: Sandbox
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
  })
  after(() => api[Symbol.asyncDispose]())

  const post = async <T>(path: string, body: object, init?: RequestInit): Promise<T> => {
    const response = await api.call('POST', path, body, init)
    assert.ok(response.ok, `${path}: ${response.status}`)
    return (await response.json()) as T
  }
  const pathOf = ({ sandboxId, id }: ProcessInfo) => `/v1/sandboxes/${sandboxId}/processes/${id}/output/sign`
  const sign = (of: ProcessInfo, body: object = {}) => post<OutputUrl>(pathOf(of), body)
  const start = (command: string, more: object = {}) => api.start(made.id, { command, ...more })
  const ended = async (command: string, more: object = {}) => {
    const { id } = await start(command, more)
    await until(async () => (await api.process(made.id, id)).status === 'exited')
    return api.process(made.id, id)
  }
  const read = async ({ url }: OutputUrl, more = '') => (await fetch(url + more)).text()

  it('give what an ended process printed, by channel and from an offset, without a key', async () => {
    const of = await ended('echo one; echo two >&2; sleep 0.05; echo three')
    const signed = await sign(of, { channel: 'stdout', expiresIn: '10m' })
    assert.ok(signed.url.startsWith(`${api.url}/v1/signed-output?grant=`), 'at the address that was asked')
    assert.equal(signed.channel, 'stdout')
    const minutes = (Date.parse(signed.expiresAt) - Date.now()) / 60_000
    assert.ok(minutes > 9 && minutes <= 10, signed.expiresAt)
    const response = await fetch(signed.url)
    assert.deepEqual(
      [response.status, response.headers.get('content-type'), response.headers.get('islet-output-offset')],
      [200, 'application/octet-stream', '0'],
    )
    assert.equal(await response.text(), 'one\nthree\n')
    assert.equal(await read(signed), 'one\nthree\n', 'again')
    assert.equal(await read(await sign(of, { channel: 'stderr' })), 'two\n')
    const both = await sign(of)
    assert.equal(both.channel, 'combined')
    assert.equal(await read(both), 'one\ntwo\nthree\n')
    const hours = (Date.parse(both.expiresAt) - Date.now()) / 3_600_000
    assert.ok(hours > 23.9 && hours <= 24)
    assert.equal(await read(both, '&offset=6'), 'o\nthree\n')
    assert.equal(await read(signed, '&offset=4'), 'three\n')
    assert.equal(await read(signed, '&offset=99'), '')
    const head = await fetch(signed.url, { method: 'HEAD' })
    assert.deepEqual([head.status, await head.text()], [200, ''])
  })

  it('give bytes as they are', async () => {
    const of = await ended(String.raw`printf '\377\000\303'`)
    const bytes = Buffer.from(await (await fetch((await sign(of)).url)).arrayBuffer())
    assert.equal(bytes.toString('hex'), 'ff00c3')
  })

  it('follow a running process from its first byte to its end, and answer before it prints', async () => {
    const silent = makeGate(made)
    const second = makeGate(made, 'second')
    const of = await start('cat gate; echo one; cat second; echo err >&2; echo two')
    const response = await fetch((await sign(of, { channel: 'stdout' })).url)
    assert.equal(response.status, 200, 'the head came at once')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    await (await silent.reached()).open()
    assert.equal((await reader.read()).value, 'one\n')
    const late = fetch(`${(await sign(of)).url}&offset=2`).then((answer) => answer.text())
    await (await second.reached()).open()
    assert.equal((await reader.read()).value, 'two\n')
    assert.equal((await reader.read()).done, true)
    assert.match(await late, /^e\n(err\ntwo\n|two\nerr\n)$/)
  })

  it('neither count as clients of the process nor keep it from running when they leave', async () => {
    const gate = makeGate(made, 'left')
    const of = await start('echo up; cat left; echo on', { maxRunAfterDisconnect: 0 })
    const controller = new AbortController()
    const { url } = await sign(of)
    const response = await fetch(url, { signal: controller.signal })
    await response.body!.getReader().read()
    controller.abort()
    await (await gate.reached()).open()
    assert.equal(await (await fetch(url)).text(), 'up\non\n')
    assert.equal((await api.process(made.id, of.id)).result?.exitCode, 0)
  })

  it('tell at which byte they begin when the beginning is not kept, in each channel', async () => {
    const command =
      'for n in $(seq 3000); do echo "line $n of stdout"; echo "e $n" >&2; done; sleep 0.1; echo the end; echo the end >&2'
    const of = await ended(command, { keepOutput: '16Ki' })
    const whole = {
      stdout: `${Array.from({ length: 3000 }, (_, n) => `line ${n + 1} of stdout\n`).join('')}the end\n`,
      stderr: `${Array.from({ length: 3000 }, (_, n) => `e ${n + 1}\n`).join('')}the end\n`,
    }
    for (const channel of ['stdout', 'stderr'] as const) {
      const { url } = await sign(of, { channel })
      const response = await fetch(url)
      const offset = Number(response.headers.get('islet-output-offset'))
      assert.ok(offset > 0 && offset < whole[channel].length, `${offset}`)
      assert.equal(await response.text(), whole[channel].slice(offset))
      const further = await fetch(`${url}&offset=${offset + 10}`)
      assert.equal(further.headers.get('islet-output-offset'), String(offset + 10))
      assert.equal(await further.text(), whole[channel].slice(offset + 10))
    }
  })

  it('slow the program to the pace of a reader, which misses nothing', async () => {
    const bytes = 64 * 1024 * 1024
    const of = await start(`head -c ${bytes} /dev/zero | tr '\\0' x; echo end >&2`)
    const response = await fetch((await sign(of, { channel: 'stdout' })).url)
    const reader = response.body!.getReader()
    let got = (await reader.read()).value!.length
    const written = await settled(async () => (await api.process(made.id, of.id)).outputBytes)
    assert.ok(written < bytes / 2, `${written} bytes were printed`)
    for (let more = await reader.read(); !more.done; more = await reader.read()) got += more.value.length
    assert.equal(got, bytes)
  })

  it('still work when the sandbox is gone, and end with it', async () => {
    const { id } = await api.createSandbox()
    const live = await api.start(id, { command: 'echo up; sleep 600' })
    const response = await fetch((await sign(live)).url)
    const reader = response.body!.getReader()
    await reader.read()
    await api.call('DELETE', `/v1/sandboxes/${id}`)
    assert.equal((await reader.read()).done, true)
    assert.equal(await read(await sign(live)), 'up\n')
    const line = (await (await api.call('POST', '/v1/run', { command: 'echo once', stream: true })).text())
      .split('\n')
      .find((text) => text.includes('start'))!
    const { sandboxId, processId } = JSON.parse(line) as { sandboxId: string; processId: string }
    const once = await post<OutputUrl>(`/v1/sandboxes/${sandboxId}/processes/${processId}/output/sign`, {})
    assert.equal(await read(once), 'once\n')
    await post('/v1/prune', { olderThan: '1h' })
    assert.equal(await read(once), 'once\n')
    const silent = await ended('true')
    await post('/v1/prune', {})
    assert.deepEqual((await errorOf(await fetch(once.url))).code, 'sandbox_not_found')
    assert.equal(await read(await sign(silent)), '')
  })

  it('of output that is not kept any more say so', async () => {
    const of = await ended('echo lost')
    const { url } = await sign(of)
    rmSync(join(api.dataDir, 'output', made.id, `${of.id}.log`))
    const error = await errorOf(await fetch(url))
    assert.deepEqual([error.status, error.code], [410, 'output_gone'])
  })

  it('are for one process, one channel and one sandbox, and for nothing else', async () => {
    const of = await ended('echo mine; echo hidden >&2')
    const { url } = await sign(of, { channel: 'stdout' })
    for (const more of ['&channel=stderr', '&offset=-1', '&offset=x', '&offset=1&offset=2'])
      assert.equal((await fetch(url + more)).status, 400, more)
    const grant = new URL(url).searchParams.get('grant')!
    const [header, payload, signature] = grant.split('.') as [string, string, string]
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const forged = Buffer.from(JSON.stringify({ ...claims, channel: 'combined' })).toString('base64url')
    const { token } = await post<{ token: string }>(`/v1/sandboxes/${made.id}/token`, {})
    const file = await post<{ url: string }>(`/v1/sandboxes/${made.id}/files/sign`, {
      path: 'x',
      method: 'GET',
    })
    const events = await post<{ url: string }>(`/v1/sandboxes/${made.id}/events/sign`, {})
    const others = [file, events].map((signed) => new URL(signed.url).searchParams.get('grant')!)
    for (const text of [`${header}.${forged}.${signature}`, 'x', '', TEST_KEY, token, ...others]) {
      const error = await errorOf(await fetch(`${api.url}/v1/signed-output?grant=${text}`))
      assert.deepEqual([error.code, error.status], ['unauthorized', 401], text)
    }
    for (const path of ['signed-files', 'signed-events']) {
      const error = await errorOf(await fetch(`${api.url}/v1/${path}?grant=${grant}`))
      assert.equal(error.code, 'unauthorized', path)
    }
    const headers = { authorization: `Bearer ${grant}` }
    const asToken = await api.call('GET', `/v1/sandboxes/${made.id}`, undefined, { headers })
    assert.equal((await errorOf(asToken)).code, 'unauthorized')
    const own = { headers: { authorization: `Bearer ${token}` } }
    assert.equal((await api.call('POST', pathOf(of), {}, own)).status, 201)
    const other = await api.createSandbox()
    const foreign = await api.start(other.id, { command: 'true' })
    assert.equal((await errorOf(await api.call('POST', pathOf(foreign), {}, own))).code, 'forbidden')
    const unknown = { ...of, id: newId('process') }
    assert.equal((await errorOf(await api.call('POST', pathOf(unknown), {}))).code, 'process_not_found')
    for (const body of [{ channel: 'stdin' }, { expiresIn: 999 }, { expiresIn: '8d' }, { more: 1 }])
      assert.equal((await api.call('POST', pathOf(of), body)).status, 400, JSON.stringify(body))
  })

  it('that a session token made end with it, also for who is reading', async () => {
    const { id } = await api.createSandbox()
    const of = await api.start(id, { command: 'echo up; sleep 600' })
    const { token, id: tokenId } = await post<{ token: string; id: string }>(`/v1/sandboxes/${id}/tokens`, {
      expiresIn: '1h',
    })
    const own = { headers: { authorization: `Bearer ${token}` } }
    const { url, expiresAt } = await post<OutputUrl>(pathOf(of), {}, own)
    assert.ok(Date.parse(expiresAt) - Date.now() <= 3_600_000)
    const events = await post<{ url: string }>(`/v1/sandboxes/${id}/events/sign`, {}, own)
    const open = [await fetch(url), await fetch(events.url)]
    assert.ok(open.every(({ status }) => status === 200))
    await api.call('DELETE', `/v1/sandboxes/${id}/tokens/${tokenId}`)
    for (const response of open) await assert.rejects(response.text(), TypeError)
    for (const again of [url, events.url]) {
      const error = await errorOf(await fetch(again))
      assert.deepEqual([error.code, error.status], ['unauthorized', 401])
    }
    assert.equal((await api.process(id, of.id)).status, 'running')
    await api.call('DELETE', `/v1/sandboxes/${id}`)
  })

  it('expire, with a hint, and are not in the log', async () => {
    const of = await ended('echo short')
    const signed = await sign(of, { expiresIn: 1000 })
    await until(async () => (await fetch(signed.url)).status === 401)
    const error = await errorOf(await fetch(signed.url))
    assert.equal(error.code, 'token_expired')
    assert.match(error.hint ?? '', /output\/sign/)
    assert.ok(api.logged.some((line) => line.includes('/v1/signed-output')))
    const signature = new URL(signed.url).searchParams.get('grant')!.split('.')[2]!
    assert.ok(!api.logged.some((line) => line.includes(signature)))
  })

  it('have no more readers at once than a sandbox may have', async () => {
    const { id } = await api.createSandbox()
    const of = await api.start(id, { command: 'echo up; sleep 600' })
    const { url } = await sign(of)
    const controller = new AbortController()
    const readers = await Promise.all(
      Array.from({ length: LIMITS.outputReaders }, () => fetch(url, { signal: controller.signal })),
    )
    assert.ok(readers.every(({ status }) => status === 200))
    const error = await errorOf(await fetch(url))
    assert.deepEqual([error.status, error.code], [429, 'limit_exceeded'])
    assert.equal(await read(await sign(await ended('echo other'))), 'other\n', 'another sandbox')
    controller.abort()
    await until(async () => {
      const again = new AbortController()
      const { status } = await fetch(url, { signal: again.signal })
      again.abort()
      return status === 200
    })
    await api.call('DELETE', `/v1/sandboxes/${id}`)
  })

  it('of events give the history as lines until the sandbox is gone', async () => {
    const { id } = await api.createSandbox()
    const { url, expiresAt } = await post<{ url: string; expiresAt: string }>(
      `/v1/sandboxes/${id}/events/sign`,
      { expiresIn: '2d' },
    )
    assert.ok(Date.parse(expiresAt) - Date.now() > 47 * 3_600_000)
    const response = await fetch(url)
    assert.equal(response.headers.get('content-type'), 'application/x-ndjson')
    const all = response.text()
    await api.call('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })
    await api.call('DELETE', `/v1/sandboxes/${id}`)
    const events = (await all)
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SandboxEvent]))
    assert.deepEqual(
      events.map(({ type }) => type),
      ['created', 'started', 'process.started', 'process.exited', 'stopped'],
    )
    const rest = await (await fetch(`${url}&since=${events[3]!.id}`)).text()
    assert.deepEqual(JSON.parse(rest), events[4])
    assert.equal((await fetch(url, { method: 'HEAD' })).status, 200)
    const error = await errorOf(await fetch(`${api.url}/v1/signed-events?grant=x`))
    assert.deepEqual([error.code, error.status], ['unauthorized', 401])
    assert.match(error.hint ?? '', /events\/sign/)
  })
})
