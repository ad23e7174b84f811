import { totalmem } from 'node:os'

/** What a cell that waits costs, and which part of the machine's memory those that always wait may take. */
const CELL_BYTES = 2 ** 20
const MEMORY_SHARE = 1 / 100
const LEAST = 4
/** A hundred creates at once, and some more for what is claimed while they are made. */
const MOST = 112

/** How many cells wait at least, where nobody said so: enough for a burst where memory is plenty, few on a small machine. */
export function warmFloor(memoryBytes = ownMemory()): number {
  const affordable = Math.floor((memoryBytes * MEMORY_SHARE) / CELL_BYTES)
  return Math.min(Math.max(affordable, LEAST), MOST)
}

/** Of the machine, or of the container that the server runs in. */
function ownMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
}
