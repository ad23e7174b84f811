// Kills a server at chosen moments of an operation and starts it again.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { heldBy, nothingLeft } from '../support/held.ts'
import { slotOf } from '../support/leftovers.ts'
import { TestServer, type TestServerOptions, WITHOUT_WARM } from '../support/server.ts'

/** Milliseconds after the start of an operation; dense where most of its steps are. */
export const MOMENTS = [0, 2, 10, 20, 40, 70]

/**
 * Starts the operation, kills the server after `moment` milliseconds, starts it again. Answers with the operation's
 * result if it was acknowledged before the crash.
 */
export async function crashDuring<T>(
  server: TestServer,
  moment: number,
  operation: () => Promise<T>,
): Promise<T | undefined> {
  const outcome = operation().then(
    (value) => ({ value }),
    () => undefined,
  )
  await setTimeout(moment)
  await server.kill()
  const acknowledged = await outcome
  await server.start()
  return acknowledged?.value
}

/** The server holds exactly the resources that its sandboxes need. */
export async function assertNoLeak(server: TestServer): Promise<void> {
  const { total } = await server.islet().sandboxes.list({ limit: 1000 })
  const { cells, layers, cgroups } = heldBy(server)
  assert.deepEqual({ cells, layers, cgroups }, { cells: total, layers: total, cgroups: total })
}

/** A server for one test, and the proof that it leaves nothing. */
export async function withServer(
  use: (server: TestServer) => Promise<void>,
  options: TestServerOptions = {},
): Promise<void> {
  const server = await TestServer.start({ ...options, env: { ...WITHOUT_WARM, ...options.env } })
  const slot = slotOf(server.dataDir)
  try {
    await use(server)
  } finally {
    await server[Symbol.asyncDispose]()
  }
  assert.deepEqual(nothingLeft(server.dataDir, slot), [])
}

/**
 * Kills the first processes of the oldest `count` cells of a slot, as a power cut does. A cell that the crash
 * cut off while it was being made has no record of a process yet.
 */
export function killCells(slot: string, count = Number.POSITIVE_INFINITY): void {
  signalCells(slot, 'SIGKILL', count)
}

export function signalCells(slot: string, signal: NodeJS.Signals, count = Number.POSITIVE_INFINITY): void {
  const records = globSync(`/run/islet/${slot}/s/*/cell.json`)
    .map((file) => JSON.parse(readFileSync(file, 'utf8')) as { process?: { pid: number }; createdAt: string })
    .toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
  for (const { process: first } of records.slice(0, count)) if (first) process.kill(first.pid, signal)
}
