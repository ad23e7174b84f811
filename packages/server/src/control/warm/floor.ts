import { totalmem } from 'node:os'

/** The cost of a waiting cell, and the part of the machine's memory that the minimum may use. */
const CELL_BYTES = 2 ** 20
const MEMORY_SHARE = 1 / 100
const LEAST = 4
/** A hundred creates at once, and some more for claims meanwhile. */
const MOST = 112

/** The default minimum of waiting cells: enough for a burst if there is plenty of memory, few on a small machine. */
export function warmFloor(memoryBytes = ownMemory()): number {
  const affordable = Math.floor((memoryBytes * MEMORY_SHARE) / CELL_BYTES)
  return Math.min(Math.max(affordable, LEAST), MOST)
}

/** Memory of the machine, or of the container that the server runs in. */
function ownMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
}
