// No acknowledged write of the store is lost and no batch is half applied, whenever the server is killed.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Sandbox } from 'islet'
import { cleanEnv } from '../support/server.ts'
import { withServer } from './crash.ts'
import { Model, type State, step } from './store-model.ts'

const WRITER = fileURLToPath(new URL('store-writer.ts', import.meta.url))
const KILLS = 250
/** Side by side, each on a directory of its own. */
const LANES = 2
const SERVER_KILLS = 12
/** A writer is killed after some of its steps, up to so many, and then within so long. */
const STEPS = 20
const WITHIN_MS = 2
/** One of this many is killed while it opens. */
const EARLY = 10

test(`${KILLS} kills of a process that writes: all that was acknowledged is there, batches are whole`, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-store-'))
  try {
    const writer = await bundle(directory)
    const lanes = Array.from({ length: LANES }, (_, lane) =>
      killWriters(join(directory, String(lane)), KILLS / LANES, writer),
    )
    const steps = (await Promise.all(lanes)).flat()
    assert.ok(Math.min(...steps) > KILLS / LANES, `${steps} steps were acknowledged`)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test(`${SERVER_KILLS} kills of a whole server under clients that write`, async () => {
  await withServer(async (server) => {
    const { id } = await server.islet().sandboxes.create()
    const model = new Model()
    for (let kill = 0; kill < SERVER_KILLS; kill++) {
      const sandbox = await server.islet().sandboxes.connect(id)
      model.check(await stateOf(sandbox))
      const before = model.next.reduce((sum, n) => sum + n)
      const clients = model.next.map((_, client) => writeUntilBroken(sandbox, client, model))
      while (model.next.reduce((sum, n) => sum + n) === before) await setTimeout(1)
      await setTimeout(Math.random() * 100)
      await server.kill()
      await Promise.all(clients)
      await server.start()
    }
    model.check(await stateOf(await server.islet().sandboxes.connect(id)))
  })
})

/** The writer and what it imports as one file without types: it starts in a tenth of the time. */
async function bundle(directory: string): Promise<string> {
  const outfile = join(directory, 'writer.mjs')
  const options = { bundle: true, platform: 'node', format: 'esm', target: 'node24' } as const
  await build({ ...options, entryPoints: [WRITER], outfile, logLevel: 'error', tsconfigRaw: '{}' })
  return outfile
}

/** Answers with how many steps of each client were acknowledged. */
async function killWriters(directory: string, kills: number, path: string): Promise<number[]> {
  const model = new Model()
  // Started ahead: starting is most of the time.
  let ready = startWriter(path)
  for (let kill = 1; kill <= kills; kill++) {
    const writer = ready
    if (kill < kills) ready = startWriter(path)
    await runAndKill(writer, { directory, model, early: kill % EARLY === 0 })
  }
  return model.next
}

function startWriter(path: string): ChildProcess {
  return spawn(process.execPath, [path], { stdio: ['pipe', 'pipe', 'inherit'], env: cleanEnv() })
}

async function runAndKill(
  writer: ChildProcess,
  { directory, model, early }: { directory: string; model: Model; early: boolean },
): Promise<void> {
  const ended = once(writer, 'close')
  const enough = Promise.withResolvers<void>()
  let text = ''
  let lines = early ? 0 : 1 + Math.floor(Math.random() * STEPS)
  writer.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    lines -= chunk.split('\n').length - 1
    if (lines <= 0) enough.resolve()
  })
  writer.stdin!.write(`${JSON.stringify({ directory, next: model.next })}\n`)
  if (!early) await Promise.race([enough.promise, ended])
  await setTimeout(Math.random() * WITHIN_MS)
  writer.kill('SIGKILL')
  await ended
  assert.equal(writer.signalCode, 'SIGKILL')
  // The kill cut off the text after the last newline.
  const [found, ...acknowledged] = text.split('\n').slice(0, -1)
  if (found !== undefined) model.check(JSON.parse(found))
  for (const line of acknowledged) {
    const [client, n] = line.split(' ').map(Number)
    model.acknowledge(client!, n!)
  }
}

async function stateOf({ store }: Sandbox): Promise<State> {
  const { keys } = await store.list({ limit: 1000 })
  const values = await Promise.all(keys.map(async (key) => [key, (await store.get(key)).value] as const))
  return Object.fromEntries(values.map(([key, value]) => [key, JSON.stringify(value)]))
}

/** A call that fails is the end: its step may have been taken or not. */
async function writeUntilBroken({ store }: Sandbox, client: number, model: Model): Promise<void> {
  for (;;) {
    const n = model.next[client]!
    const operations = step(client, n)
    const [first] = operations
    try {
      if (operations.length > 1) await store.batch(operations)
      else if (first!.op === 'set') await store.set(first!.key, { value: first!.value })
      else await store.delete(first!.key)
    } catch {
      return
    }
    model.acknowledge(client, n)
  }
}
