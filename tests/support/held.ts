// Counts from outside what a server holds for its sandboxes, to compare it with its list of sandboxes.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { slotOf, tracesOf } from './leftovers.ts'
import type { TestServer } from './server.ts'

/** Not the output of stopped sandboxes: it is kept for an hour. */
export interface Held {
  cells: number
  layers: number
  cgroups: number
}

export function heldBy(server: TestServer): Held {
  const slot = slotOf(server.dataDir)!
  const memory = readdirSync('/sys/fs/cgroup').includes('memory') ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup'
  return {
    cells: count(`/run/islet/${slot}/s`),
    layers: count(join(server.dataDir, 'pool/layers')),
    cgroups: count(`${memory}/islet${slot}`, (name) => name.startsWith('cel-')),
  }
}

/** Nothing of the server is left on the machine. Call it after the server was disposed of. */
export function nothingLeft(dataDir: string, slot: string | undefined): string[] {
  return Object.entries(tracesOf(dataDir, slot)).flatMap(([kind, found]) =>
    (found as string[]).map((trace) => `${kind}: ${trace}`),
  )
}

function count(
  directory: string,
  counts: (name: string) => boolean = (name) => !name.startsWith('.'),
): number {
  try {
    return readdirSync(directory).filter(counts).length
  } catch {
    return 0
  }
}
