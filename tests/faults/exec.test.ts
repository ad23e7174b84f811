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
