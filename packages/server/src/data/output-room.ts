// What the processes of one sandbox have printed is bounded in all: beyond the bound the oldest of it goes, whoever printed it.
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.ts'
import type { OutputLog } from './output-log.ts'

/** The files are looked at whenever this part of the bound was printed. */
const PART = 16

export interface OutputRoomOptions {
  dir: string
  boundBytes: number
  /** Of one that is followed: it removes its files itself, and goes on in a new one. */
  running(processId: string): Pick<OutputLog, 'drop'> | undefined
  /** Of those that have not ended, followed or not. After a restart of the server it takes a while until all are followed. */
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

  constructor(options: OutputRoomOptions) {
    this.#options = options
  }

  printed(sandboxId: string, bytes: number): void {
    const { boundBytes, log } = this.#options
    const sum = (this.#printed.get(sandboxId) ?? 0) + bytes
    const isDue = sum >= boundBytes / PART && !this.#sweeping.has(sandboxId)
    this.#printed.set(sandboxId, isDue ? 0 : sum)
    if (!isDue) return
    this.#sweeping.add(sandboxId)
    this.sweep(sandboxId)
      .catch((error) => log.warn({ sandbox: sandboxId, error }, 'output not swept'))
      .finally(() => this.#sweeping.delete(sandboxId))
  }

  forget(sandboxId: string): void {
    this.#printed.delete(sandboxId)
  }

  /** Removes the oldest files until the rest is within the bound; those that are being written to last. */
  async sweep(sandboxId: string): Promise<void> {
    const { boundBytes, running } = this.#options
    const found = inOrder(await this.#files(sandboxId))
    let sum = found.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0)
    if (sum <= boundBytes) return
    const last = new Map(found.map(({ process, number }) => [process, number]))
    const unended = this.#options.unended(sandboxId)
    const isLast = ({ process, number }: Found) =>
      number === last.get(process) && running(process) !== undefined
    const isOther = (each: Found) => !isLast(each)
    for (const { path, process, number, sizeBytes } of [...found.filter(isOther), ...found.filter(isLast)]) {
      if (sum <= boundBytes) return
      const log = running(process)
      // Whoever is going to follow it takes the offset from its files.
      if (!log && unended.has(process)) continue
      if (log) log.drop(number)
      else await rm(path, { force: true })
      sum -= sizeBytes
    }
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

/** Oldest first, those of one process in their order, so that what is left of it is its end: also when the clock was set back meanwhile. */
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
