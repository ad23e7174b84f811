// The entries of a list until they are sent: a few in memory, the others in an unlinked file, as sorted runs that are merged
// while they are read. Each line of the file is an entry.
import { posix } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { type FileEntry, IsletError } from '@islet/contract'
import type { Hold } from '../../control/held.ts'
import type { Entry } from '../../guest/guest.ts'
import { KeptBytes } from '../output/kept-bytes.ts'

/** Memory of an entry beside its texts. */
const ENTRY_BYTES = 160
/** Entries in memory before they are written as a run: few, so that they are still young garbage then. */
const RUN_BYTES = 64 * 1024

/** Entries are counted in `add`. */
const UNCOUNTED: Hold = { take: () => true, [Symbol.dispose]: () => {} }

interface ListedFilesOptions {
  /** Path of the file until it is unlinked. */
  path: string
  /** Counts the bytes in memory and in the file. */
  hold: Hold
  /** False while the disk is too full to write. */
  hasRoom(): boolean
}

export class ListedFiles implements Iterable<FileEntry>, Disposable {
  readonly #directory: string
  readonly #options: ListedFilesOptions
  #entries: Entry[] = []
  #bytes = 0
  #runs: Iterable<Entry>[] = []
  #kept: KeptBytes

  constructor(directory: string, options: ListedFilesOptions) {
    this.#directory = directory
    this.#options = options
    this.#kept = this.#keep()
  }

  /** Throws `too_many_requests`. */
  add(entries: Entry[]): void {
    const bytes = entries.reduce(
      (sum, { path, target = '' }) => sum + ENTRY_BYTES + path.length + target.length,
      0,
    )
    if (!this.#options.hold.take(bytes)) {
      // Release now, so that of two growing lists the other one can go on.
      this.clear()
      throw new IsletError('too_many_requests', 'Too many large lists of this sandbox wait to be read.')
    }
    this.#entries.push(...entries)
    this.#bytes += bytes
    if (this.#bytes >= RUN_BYTES) this.#endRun()
  }

  clear(): void {
    this.#entries = []
    this.#bytes = 0
    this.#runs = []
    this.#kept[Symbol.dispose]()
    this.#kept = this.#keep()
    this.#options.hold[Symbol.dispose]()
  }

  /** Sorted by path. */
  *[Symbol.iterator](): Generator<FileEntry> {
    for (const entry of merge([...this.#runs, this.#entries.sort(byPath)]))
      yield toFileEntry(posix.join(this.#directory, entry.path), entry)
  }

  [Symbol.dispose](): void {
    this.clear()
  }

  #keep(): KeptBytes {
    const { path, hasRoom } = this.#options
    return new KeptBytes({ path, disk: UNCOUNTED, hasRoom })
  }

  /** Without room on the disk the run stays in memory. */
  #endRun(): void {
    const kept = this.#kept
    const run = this.#entries.sort(byPath)
    const start = kept.length
    const text = run.map((entry) => `${JSON.stringify(entry)}\n`).join('')
    this.#runs.push(kept.append(Buffer.from(text)) ? entriesOf(kept, start, kept.length) : run)
    this.#entries = []
    this.#bytes = 0
  }
}

function entriesOf(kept: KeptBytes, start: number, end: number): Iterable<Entry> {
  return {
    *[Symbol.iterator]() {
      const decoder = new StringDecoder()
      let rest = ''
      for (const piece of kept.pieces(start, end)) {
        const lines = (rest + decoder.write(piece)).split('\n')
        rest = lines.pop()!
        for (const line of lines) yield JSON.parse(line) as Entry
      }
    },
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
  next: Entry
  rest: Iterator<Entry>
}

/** Merges sorted runs with a heap, ordered by the next entry of each run. */
function* merge(runs: readonly Iterable<Entry>[]): Generator<Entry> {
  const heap: Run[] = []
  for (const run of runs) {
    const rest = run[Symbol.iterator]()
    const { value, done } = rest.next()
    if (!done) heap.push({ next: value, rest })
  }
  for (let at = heap.length >> 1; at >= 0; at--) sink(heap, at)
  while (heap.length > 0) {
    const first = heap[0]!
    yield first.next
    const { value, done } = first.rest.next()
    if (done) {
      const last = heap.pop()!
      if (heap.length === 0) return
      heap[0] = last
    } else first.next = value
    sink(heap, 0)
  }
}

function sink(heap: Run[], start: number): void {
  for (let at = start; ; ) {
    const left = 2 * at + 1
    if (left >= heap.length) return
    const right = left + 1
    const isRightLess = right < heap.length && byPath(heap[right]!.next, heap[left]!.next) < 0
    const least = isRightLess ? right : left
    if (byPath(heap[least]!.next, heap[at]!.next) >= 0) return
    const held = heap[at]!
    heap[at] = heap[least]!
    heap[least] = held
    at = least
  }
}
