// The life of a sandbox as seen over HTTP, and its end as seen from the machine.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { ErrorBody, EventPage, SandboxEvent, SandboxStatus } from '@islet/contract'
import type { Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import type { TestServer } from './server.ts'

/** Oldest first; reading them wakes nothing. */
export async function eventsOf(server: TestServer, id: string): Promise<SandboxEvent[]> {
  const answer = await server.fetch(`/v1/sandboxes/${id}/events?direction=asc&limit=1000`)
  assert.equal(answer.status, 200)
  return ((await answer.json()) as EventPage).events
}

/** Only events of its life: no processes, services, checkpoints. */
export async function movesOf(server: TestServer, id: string): Promise<string[]> {
  const types = (await eventsOf(server, id)).map(({ type }) => type)
  return types.filter((type) => !type.includes('.'))
}

export async function becomes(sandbox: Sandbox, status: SandboxStatus): Promise<void> {
  await until(async () => (await sandbox.getInfo()).status === status)
}

export async function errorIn(answer: Response): Promise<ErrorBody['error']> {
  return ((await answer.json()) as ErrorBody).error
}

/** As the kernel would: kills the first process of a sandbox that runs, and waits until that was noticed. */
export async function breakDown(sandbox: Sandbox): Promise<void> {
  process.kill(await firstProcessOf(sandbox), 'SIGKILL')
  await becomes(sandbox, 'failed')
}

/** The host's pid of the first process: the parent of a command that only this test runs. */
export async function firstProcessOf(sandbox: Sandbox): Promise<number> {
  const seconds = `${1000 + Math.floor(Math.random() * 1e6)}.${Date.now()}`
  const { id } = await sandbox.exec.spawn(['sleep', seconds])
  const words = `sleep\0${seconds}\0`
  let found: string | undefined
  await until(() => {
    found = pids().find((pid) => textOf(`/proc/${pid}/cmdline`) === words)
    return found !== undefined
  })
  const parent = Number(/^PPid:\t(\d+)/m.exec(textOf(`/proc/${found}/status`))![1])
  await sandbox.exec.kill(id)
  return parent
}

function pids(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
