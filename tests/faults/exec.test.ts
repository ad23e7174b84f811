import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { ProcessInfo, ProcessOutput } from '@islet/contract'
import type { TestServer } from '../support/server.ts'
import { assertNoLeak, crashDuring, MOMENTS, withServer } from './crash.ts'

test('a command in flight finishes and its result and output can be fetched afterwards', async () => {
  await withServer(async (server) => {
    const { id } = await server.islet().sandboxes.create()
    const processes = `/v1/sandboxes/${id}/processes`
    const command = 'echo one; echo two >&2; sleep 0.2; echo three; exit 7'
    for (const moment of MOMENTS) {
      const start = async () => (await (await server.post(processes, { command })).json()) as ProcessInfo
      const acknowledged = await crashDuring(server, moment, start)
      const listed = (await (await server.fetch(processes)).json()) as { processes: ProcessInfo[] }
      if (acknowledged) assert.ok(listed.processes.some((process) => process.id === acknowledged.id))
      for (const process of listed.processes) {
        const ended = await waitForEnd(server, id, process.id)
        // A process that the guest never received did not run; all others ran to their end.
        if (ended.status === 'lost') assert.notEqual(process.id, acknowledged?.id)
        else await assertWhole(server, id, ended)
      }
    }
    await assertNoLeak(server)
  })
})

test('an exec whose caller was cut off by the crash ends and is remembered', async () => {
  await withServer(async (server) => {
    const { id } = await server.islet().sandboxes.create()
    const exec = () => server.post(`/v1/sandboxes/${id}/exec`, { command: 'sleep 1; echo late; exit 3' })
    await crashDuring(server, 400, exec)
    const { processes } = (await (await server.fetch(`/v1/sandboxes/${id}/processes`)).json()) as {
      processes: ProcessInfo[]
    }
    const ended = await waitForEnd(server, id, processes[0]!.id)
    assert.equal(ended.result?.exitCode, 3)
    const output = await (await server.fetch(`/v1/sandboxes/${id}/processes/${ended.id}/output`)).json()
    assert.equal((output as ProcessOutput).stdout, 'late\n')
  })
})

test('output that crosses several crashes is kept whole and in order', async () => {
  await withServer(async (server) => {
    const { id } = await server.islet().sandboxes.create()
    const lines = 90_000
    const command = `i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo $i; done`
    const started = (await (
      await server.post(`/v1/sandboxes/${id}/processes`, { command })
    ).json()) as ProcessInfo
    for (let crash = 0; crash < 5; crash++) {
      await setTimeout(60 + crash * 37)
      await server.kill()
      await server.start()
    }
    const ended = await waitForEnd(server, id, started.id)
    const expected = Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join('')
    assert.equal(ended.outputBytes, expected.length)
    const output = await (await server.fetch(`/v1/sandboxes/${id}/processes/${started.id}/output`)).json()
    assert.equal((output as ProcessOutput).stdout, expected)
  })
})

test('a reader of a URL of output continues where a crash cut it off, and gets each byte of its channel once', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const lines = 40_000
    const command = `i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo $i; echo "err $i" >&2; done`
    const { id } = await sandbox.exec.spawn(command)
    const url = await sandbox.exec.streamUrl(id, { channel: 'stdout' })
    let got = ''
    let connections = 0
    const read = async () => {
      for (let isWhole = false; !isWhole; ) {
        try {
          const response = await fetch(`${url}&offset=${got.length}`)
          if (!response.ok) continue
          assert.equal(response.headers.get('islet-output-offset'), String(got.length))
          connections++
          for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) got += chunk
          isWhole = true
        } catch (error) {
          assert.ok(error instanceof TypeError, String(error))
          await setTimeout(20)
        }
      }
    }
    const reading = read()
    for (let crash = 0; crash < 3; crash++) {
      const before = connections
      while (connections === before && crash > 0) await setTimeout(5)
      await setTimeout(100 + crash * 50)
      await server.kill()
      await server.start()
    }
    await reading
    const expected = Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join('')
    assert.ok(got === expected, `${got.length} of ${expected.length} bytes`)
    assert.ok(connections > 1, 'it was cut off')
  })
})

test('a one-shot sandbox whose caller was cut off by the crash is removed by the next start; what it printed is kept', async () => {
  await withServer(async (server) => {
    const islet = server.islet()
    const kept = await islet.sandboxes.create()
    for (const options of [{}, { onStdout() {} }]) {
      const running = islet.run('echo up; sleep 600', options).catch((error: unknown) => error)
      let once: string | undefined
      while (once === undefined) {
        const { sandboxes } = await islet.sandboxes.list({ status: 'running' })
        const [process] = await processesOf(server, sandboxes.find(({ id }) => id !== kept.id)?.id)
        if (process && process.outputBytes > 0) once = process.sandboxId
      }
      await server.kill()
      assert.ok((await running) instanceof Error)
      await server.start()
      const { sandboxes } = await islet.sandboxes.list()
      assert.deepEqual(
        sandboxes.map(({ id }) => id),
        [kept.id],
      )
      const [ended] = await processesOf(server, once)
      assert.equal(ended?.status, 'lost')
      const gone = await islet.sandboxes.connect(once)
      assert.equal(gone.status, 'stopped')
      assert.equal((await gone.exec.output(ended.id)).stdout, 'up\n')
      await assertNoLeak(server)
    }
  })
})

test('a counter that was started before the crash keeps counting', async () => {
  await withServer(async (server) => {
    const { id } = await server.islet().sandboxes.create()
    const command = 'i=0; while :; do i=$((i+1)); echo $i > new; mv new count; sleep 0.02; done'
    await server.post(`/v1/sandboxes/${id}/processes`, { command })
    const sandbox = await server.islet().sandboxes.connect(id)
    const count = async () => Number((await sandbox.exec.run('sleep 0.3; cat count')).stdout)
    const before = await count()
    await server.kill()
    await server.start()
    const after = await count()
    assert.ok(after > before)
    assert.ok((await count()) > after)
  })
})

async function processesOf(server: TestServer, id: string | undefined): Promise<ProcessInfo[]> {
  const answer = id === undefined ? undefined : await server.fetch(`/v1/sandboxes/${id}/processes`)
  return answer?.ok ? ((await answer.json()) as { processes: ProcessInfo[] }).processes : []
}

async function waitForEnd(server: TestServer, sandboxId: string, processId: string): Promise<ProcessInfo> {
  for (;;) {
    const path = `/v1/sandboxes/${sandboxId}/processes/${processId}?wait=5000`
    const process = (await (await server.fetch(path)).json()) as ProcessInfo
    if (process.status !== 'running') return process
  }
}

async function assertWhole(server: TestServer, sandboxId: string, process: ProcessInfo): Promise<void> {
  assert.equal(process.result?.exitCode, 7)
  const answer = await server.fetch(`/v1/sandboxes/${sandboxId}/processes/${process.id}/output`)
  const { stdout, stderr, truncated } = (await answer.json()) as ProcessOutput
  assert.deepEqual([stdout, stderr, truncated], ['one\nthree\n', 'two\n', false])
}
