// Saved memory of sandboxes, in directories below <data>/memory. It is saved if the engine can, the processes allow it, and all saved
// memory together stays within the limit.
import { cp, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { directoryBytes, syncFilesystem } from '../../storage/directories.ts'
import { spareBytes } from '../../storage/room.ts'
import type { Fleet } from '../fleet.ts'
import type { Machine } from '../machine.ts'

/** A program that has not noticed yet that its connection to this server ended cannot be saved, so there are several attempts. */
const ATTEMPTS = 4
const AGAIN_MS = 50

export interface MemoryOptions {
  dir: string
  /** For all together. */
  limitBytes: number
}

export class Memory {
  readonly #parts: Pick<Fleet, 'engine' | 'log'>
  readonly #options: MemoryOptions
  /** Bytes that each uses or has reserved. */
  readonly #bytes = new Map<string, number>()

  constructor(parts: Pick<Fleet, 'engine' | 'log'>, options: MemoryOptions) {
    this.#parts = parts
    this.#options = options
  }

  path(name: string): string {
    return join(this.#options.dir, name)
  }

  /** Removes all but `kept`: a crash left the others. */
  async start(kept: ReadonlySet<string>): Promise<void> {
    for (const name of await readdir(this.#options.dir).catch(() => [])) {
      if (kept.has(name)) this.#bytes.set(name, await directoryBytes(this.path(name)))
      else await this.remove(name)
    }
  }

  /** For a frozen sandbox whose link is suspended; it stays frozen. False: it could not be saved, and nothing is left. */
  async save({ cell }: Machine, name: string): Promise<boolean> {
    const { engine, log } = this.#parts
    const { memoryBytes } = await engine.usage(cell).catch(() => ({ memoryBytes: 0 }))
    if (!(await this.takeRoom(name, memoryBytes))) {
      log.warn({ cell: cell.id, memoryBytes }, 'memory not saved: not enough room on the disk')
      return false
    }
    for (let attempt = 1; ; attempt++) {
      try {
        await engine.saveMemory(cell, this.path(name))
        await this.#measure(name)
        return true
      } catch (error) {
        await rm(this.path(name), { recursive: true, force: true })
        if (attempt === ATTEMPTS) {
          this.#bytes.delete(name)
          log.warn({ error, cell: cell.id }, 'memory not saved')
          return false
        }
      }
      await engine.thaw(cell)
      await setTimeout(AGAIN_MS)
      await engine.freeze(cell)
      await mkdir(this.path(name), { recursive: true, mode: 0o700 })
    }
  }

  /** False: there is no room. */
  async copy(from: string, name: string): Promise<boolean> {
    if (!(await this.takeRoom(name, this.#bytes.get(from) ?? 0))) return false
    await cp(this.path(from), this.path(name), { recursive: true })
    await this.#measure(name)
    return true
  }

  /** Does nothing if it does not exist. */
  async remove(name: string): Promise<void> {
    await rm(this.path(name), { recursive: true, force: true })
    this.#bytes.delete(name)
  }

  /** All saved memory survives a power cut from now on. */
  async sync(): Promise<void> {
    await syncFilesystem(this.#options.dir)
  }

  /** Makes the directory. It is on the disk of the server's records, which checkpoints must not fill. */
  async takeRoom(name: string, bytes: number): Promise<boolean> {
    const sum = this.#bytes.values().reduce((sum, each) => sum + each, 0)
    if (sum + bytes > this.#options.limitBytes) return false
    this.#bytes.set(name, bytes)
    const spare = await mkdir(this.path(name), { recursive: true, mode: 0o700 }).then(
      () => spareBytes([this.path(name)]),
      () => 0,
    )
    if (spare > bytes) return true
    await this.remove(name)
    return false
  }

  async #measure(name: string): Promise<void> {
    this.#bytes.set(name, await directoryBytes(this.path(name)))
  }
}

/** Reconnects a suspended link to the cell of the machine. */
export async function reconnect({ engine }: Pick<Fleet, 'engine'>, { guest, cell }: Machine): Promise<void> {
  await guest.resume(join(cell.linkDir, 'link.sock'))
  await engine.ownSocket(cell)
}
