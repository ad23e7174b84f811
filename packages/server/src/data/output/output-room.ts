// Bounds the kept output of each sandbox, and of all sandboxes together. Beyond the bound of a sandbox its oldest files are removed;
// beyond the total, the oldest files of the sandbox that keeps most.
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../log.ts'
import type { OutputLog } from './output-log.ts'

/** Files are counted again after output of 1/PART of a bound. */
const PART = 16

interface OutputRoomOptions {
  dir: string
  boundBytes: number
  /** Of all sandboxes. */
  totalBytes: number
  /** The log of a followed process, which removes its files itself. */
  running(processId: string): Pick<OutputLog, 'drop'> | undefined
  /** Processes that have not ended, followed or not: after a restart of the server some are not followed yet. */
  unended(sandboxId: string): ReadonlySet<string>
  log: Log
}

interface Found {
  path: string
  process: string
  number: number
  sizeBytes: number
  modifiedMs: number
}

export class OutputRoom {
  readonly #options: OutputRoomOptions
  readonly #printed = new Map<string, number>()
  readonly #sweeping = new Set<string>()
  /** An upper bound of what each sandbox keeps: the size of its files when they were counted, plus the output since then. */
  readonly #kept = new Map<string, number>()
  #sum = 0
  /** Files are removed when the sum exceeds this. */
  #mostBytes: number
  #isRelieving = false

  constructor(options: OutputRoomOptions) {
    this.#options = options
    this.#mostBytes = options.totalBytes
    this.#inBackground(() => this.#countAll())
  }

  printed(sandboxId: string, bytes: number): void {
    const { boundBytes } = this.#options
    this.#count(sandboxId, (this.#kept.get(sandboxId) ?? 0) + bytes)
    if (this.#sum > this.#mostBytes && !this.#isRelieving) this.#inBackground(() => this.#relieve())
    const sum = (this.#printed.get(sandboxId) ?? 0) + bytes
    const isDue = sum >= boundBytes / PART && !this.#sweeping.has(sandboxId)
    this.#printed.set(sandboxId, isDue ? 0 : sum)
    if (!isDue) return
    this.#sweeping.add(sandboxId)
    this.#inBackground(() => this.sweep(sandboxId).finally(() => this.#sweeping.delete(sandboxId)))
  }

  forget(sandboxId: string, { removed }: { removed: boolean }): void {
    this.#printed.delete(sandboxId)
    if (removed) this.#count(sandboxId, 0)
  }

  /** Removes the oldest files until the rest is within the bound; files that are being written go last. */
  async sweep(sandboxId: string, boundBytes = this.#options.boundBytes): Promise<void> {
    const found = inOrder(await this.#files(sandboxId))
    this.#count(sandboxId, bytesOf(found))
    if (bytesOf(found) > boundBytes)
      this.#count(sandboxId, await this.#removeOldest(sandboxId, found, boundBytes))
  }

  /** Returns how many bytes are left. */
  async #removeOldest(sandboxId: string, found: Found[], boundBytes: number): Promise<number> {
    const { running } = this.#options
    let sum = bytesOf(found)
    const last = new Map(found.map(({ process, number }) => [process, number]))
    const unended = this.#options.unended(sandboxId)
    const isLast = ({ process, number }: Found) =>
      number === last.get(process) && running(process) !== undefined
    const isOther = (each: Found) => !isLast(each)
    for (const { path, process, number, sizeBytes } of [...found.filter(isOther), ...found.filter(isLast)]) {
      if (sum <= boundBytes) break
      const log = running(process)
      // The offset at which it will be followed is in its files.
      if (!log && unended.has(process)) continue
      if (log) log.drop(number)
      else await rm(path, { force: true })
      sum -= sizeBytes
    }
    return sum
  }

  /** Sandboxes that keep most give up the excess, and a little more, so that this does not run again soon. */
  async #relieve(): Promise<void> {
    const { totalBytes } = this.#options
    this.#isRelieving = true
    try {
      for (const [sandboxId, bytes] of [...this.#kept].sort(([, a], [, b]) => b - a)) {
        if (this.#sum <= totalBytes) break
        await this.sweep(sandboxId, Math.max(bytes - (this.#sum - totalBytes) - totalBytes / PART, 0))
      }
    } finally {
      this.#isRelieving = false
      this.#mostBytes = this.#sum > totalBytes ? this.#sum + totalBytes / PART : totalBytes
    }
  }

  /** Counts the files that earlier servers kept. */
  async #countAll(): Promise<void> {
    for (const sandboxId of await readdir(this.#options.dir).catch(() => []))
      this.#count(sandboxId, bytesOf(await this.#files(sandboxId)))
  }

  #count(sandboxId: string, bytes: number): void {
    this.#sum += bytes - (this.#kept.get(sandboxId) ?? 0)
    if (bytes === 0) this.#kept.delete(sandboxId)
    else this.#kept.set(sandboxId, bytes)
  }

  #inBackground(work: () => Promise<void>): void {
    work().catch((error) => this.#options.log.warn({ error }, 'old output not removed'))
  }

  async #files(sandboxId: string): Promise<Found[]> {
    const directory = join(this.#options.dir, sandboxId)
    const names = await readdir(directory).catch(() => [])
    const found: Found[] = []
    for (const name of names) {
      const [, process, number = '0'] = /^(.+)\.log(?:\.(\d+))?$/.exec(name) ?? []
      const path = join(directory, name)
      const entry = process === undefined ? undefined : await stat(path).catch(() => undefined)
      if (entry)
        found.push({
          path,
          process: process!,
          number: Number(number),
          sizeBytes: entry.size,
          modifiedMs: entry.mtimeMs,
        })
    }
    return found
  }
}

const bytesOf = (found: Found[]): number => found.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)

/** Oldest first, and files of one process in their order, so that its end is kept, even if the clock was set back. */
function inOrder(found: Found[]): Found[] {
  const newest = new Map<string, number>()
  const aged = found
    .toSorted((a, b) => a.number - b.number)
    .map((each) => {
      const modifiedMs = Math.max(each.modifiedMs, newest.get(each.process) ?? 0)
      newest.set(each.process, modifiedMs)
      return { ...each, modifiedMs }
    })
  return aged.sort((a, b) => a.modifiedMs - b.modifiedMs || a.number - b.number)
}
