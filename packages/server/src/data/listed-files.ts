// The entries of a directory tree on their way to an answer: kept as the guest sends them, in batches that are sorted each, and merged while they are read.
import { posix } from 'node:path'
import { type FileEntry, IsletError } from '@islet/contract'
import type { Hold } from '../control/held.ts'
import type { Entry } from '../guest/guest.ts'

/** What an entry takes in memory beside its texts. */
const ENTRY_BYTES = 160

export class ListedFiles implements Iterable<FileEntry>, Disposable {
  readonly #directory: string
  readonly #hold: Hold
  #batches: Entry[][] = []

  constructor(directory: string, hold: Hold) {
    this.#directory = directory
    this.#hold = hold
  }

  /** Throws `too_many_requests`. */
  add(batch: Entry[]): void {
    const bytes = batch.reduce(
      (sum, { path, target = '' }) => sum + ENTRY_BYTES + path.length + target.length,
      0,
    )
    if (!this.#hold.take(bytes))
      throw new IsletError('too_many_requests', 'Too many large lists of this sandbox wait to be read.')
    this.#batches.push(batch.sort(byPath))
  }

  clear(): void {
    this.#batches = []
    this.#hold[Symbol.dispose]()
  }

  /** By path. */
  *[Symbol.iterator](): Generator<FileEntry> {
    for (const entry of merge(this.#batches))
      yield toFileEntry(posix.join(this.#directory, entry.path), entry)
  }

  [Symbol.dispose](): void {
    this.clear()
  }
}

export function toFileEntry(path: string, entry: Entry): FileEntry {
  return {
    name: posix.basename(path),
    path,
    type: entry.type,
    sizeBytes: entry.sizeBytes,
    mode: entry.mode.toString(8).padStart(4, '0'),
    uid: entry.uid,
    gid: entry.gid,
    modifiedAt: new Date(entry.mtimeMs).toISOString(),
    ...(entry.target !== undefined && { target: entry.target }),
  }
}

const byPath = (a: Entry, b: Entry): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)

interface Run {
  entries: Entry[]
  at: number
}

const head = ({ entries, at }: Run): string => entries[at]!.path

/** A heap of the batches, by what is next in each. */
function* merge(batches: readonly Entry[][]): Generator<Entry> {
  const heap: Run[] = batches.filter(({ length }) => length > 0).map((entries) => ({ entries, at: 0 }))
  for (let at = heap.length >> 1; at >= 0; at--) sink(heap, at)
  while (heap.length > 0) {
    const first = heap[0]!
    yield first.entries[first.at++]!
    if (first.at === first.entries.length) {
      const last = heap.pop()!
      if (heap.length === 0) return
      heap[0] = last
    }
    sink(heap, 0)
  }
}

function sink(heap: Run[], start: number): void {
  for (let at = start; ; ) {
    const left = 2 * at + 1
    if (left >= heap.length) return
    const right = left + 1
    const least = right < heap.length && head(heap[right]!) < head(heap[left]!) ? right : left
    if (head(heap[least]!) >= head(heap[at]!)) return
    const held = heap[at]!
    heap[at] = heap[least]!
    heap[least] = held
    at = least
  }
}
