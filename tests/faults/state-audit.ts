// Compares what a server holds on disk and on the machine with its records: nothing more, nothing less.
import assert from 'node:assert/strict'
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { slotOf } from '../support/leftovers.ts'
import type { TestServer } from '../support/server.ts'

const SETTLE_MS = 10_000

interface Root {
  layer: string
  trees: { lowers: { kind: string; name?: string }[] }[]
}

interface Records {
  sandboxes: { id: string; status: string; cell: string; memory: string | null; root: Root }[]
  saved: { id: string; status: string; memory: number; named: number; root: Root }[]
  held: string[]
}

/** Call it when nothing is being done. What still goes on in the background is waited for. */
export async function audit(server: TestServer): Promise<void> {
  const deadline = Date.now() + SETTLE_MS
  for (;;) {
    try {
      check(server)
      return
    } catch (error) {
      if (Date.now() > deadline) throw error
      await setTimeout(50)
    }
  }
}

export function layersOf(server: TestServer): string[] {
  return list(join(server.dataDir, 'pool/layers'))
}

export function cellsOf(slot: string): string[] {
  return list(`/run/islet/${slot}/s`)
}

function check(server: TestServer): void {
  const { sandboxes, saved, held } = readRecords(server.dataDir)
  const unsettled = sandboxes.filter(({ status }) => status === 'creating').map(({ id }) => id)
  assert.deepEqual(unsettled, [], 'no sandbox is half made')
  for (const { id, status, named } of saved)
    assert.deepEqual({ id, status, named: named > 0 }, { id, status: 'ready', named: true })

  const holders = [...sandboxes, ...saved]
  const needed = new Set(holders.flatMap(({ root }) => stackOf(root)))
  assert.deepEqual(layersOf(server), [...needed].sort(), 'layers on disk are those that something stands on')
  const pairs = holders.flatMap(({ id, root }) => stackOf(root).map((layer) => `${layer} ${id}`))
  assert.deepEqual(held, pairs.sort(), 'who holds which layer')

  const memories = [
    ...sandboxes.flatMap(({ memory }) => memory ?? []),
    ...saved.flatMap(({ id, memory }) => (memory ? id : [])),
  ]
  assert.deepEqual(list(join(server.dataDir, 'memory')), memories.sort(), 'memory on disk')

  const slot = slotOf(server.dataDir)!
  const cells = cellsOf(slot)
  const running = sandboxes.filter(({ status }) => status === 'running').map(({ cell }) => cell)
  const still = sandboxes
    .filter(({ status }) => status === 'paused' || status === 'hibernated')
    .map(({ cell }) => cell)
  assert.deepEqual(missing(running, cells), [], 'what runs has a cell')
  assert.deepEqual(missing(cells, [...running, ...still]), [], 'no cell without a sandbox')
  const groups = globSync(`/sys/fs/cgroup/{,*/}islet${slot}/cel-*`)
  const names = [...new Set(groups.map((path) => basename(path)))].sort()
  assert.deepEqual(names, cells, 'a cgroup for every cell, and no other')
}

/** From copies: the server has the database for itself. The log first, so that folding it meanwhile changes nothing. */
export function readRecords(dataDir: string): Records {
  const directory = mkdtempSync(join(tmpdir(), 'islet-audit-'))
  try {
    // Not copyFile: it does not end when the server shortens its log meanwhile.
    for (const name of ['islet.db-wal', 'islet.db'])
      if (existsSync(join(dataDir, name)))
        writeFileSync(join(directory, name), readFileSync(join(dataDir, name)))
    using db = new DatabaseSync(join(directory, 'islet.db'))
    const rows = (sql: string) => db.prepare(sql).all() as Record<string, never>[]
    return {
      sandboxes: rows(`SELECT id, status, cell, memory, root FROM sandboxes WHERE status != 'stopped'`).map(
        (row) => ({ ...row, root: JSON.parse(row.root!) }) as never,
      ),
      saved: rows(
        `SELECT id, status, memory, json_extract(state, '$.root') AS root,
         (SELECT count(*) FROM checkpoints WHERE saved_id = s.id) + (SELECT count(*) FROM snapshots WHERE saved_id = s.id) AS named
         FROM saved_states AS s`,
      ).map((row) => ({ ...row, root: JSON.parse(row.root!) }) as never),
      held: rows('SELECT layer, holder FROM layers_held')
        .map(({ layer, holder }) => `${layer} ${holder}`)
        .sort(),
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function stackOf({ layer, trees }: Root): string[] {
  const below = trees.flatMap(({ lowers }) => lowers)
  return [...new Set([layer, ...below.flatMap(({ kind, name }) => (kind === 'layer' ? name! : []))])]
}

const missing = (wanted: string[], found: string[]) => wanted.filter((name) => !found.includes(name))

/** Also what is on its way in or out. */
function list(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).sort() : []
}
