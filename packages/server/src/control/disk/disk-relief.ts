// Acts when the disk is low: pauses sandboxes that fill it. They can be deleted, but not resumed before there is room; then they
// are resumed automatically, by this server or a later one.

import type { Fleet } from '../fleet.ts'
import { DISK_LOW, isPausedForDisk } from '../lifecycle.ts'
import type { Suspension } from '../suspension.ts'
import type { Disk } from './disk.ts'
import { LOOK_MS } from './disk.ts'

/** A sandbox that has grown by this much ... */
const GROWN_BYTES = 1024 ** 2
/** ... in this time fills the disk. */
const WINDOW_MS = 1000
/** Deleted bytes are free only after a sync of the filesystem. Shrinking the pool gives unused room back to the machine. */
const RECLAIM_EVERY_MS = 2000
const SHRINK_EVERY_MS = 60_000

interface Sample {
  at: number
  sizes: Map<string, number>
}

interface DiskReliefOptions {
  fleet: Fleet
  disk: Disk
  suspension: Suspension
}

export class DiskRelief {
  readonly #fleet: Fleet
  readonly #disk: Disk
  readonly #suspension: Suspension
  /** Paused for the disk, by this server or an earlier one. */
  readonly #paused: Set<string>
  #samples: Sample[] = []
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #reclaimAt = 0
  #shrinkAt = 0

  constructor({ fleet, disk, suspension }: DiskReliefOptions) {
    this.#fleet = fleet
    this.#disk = disk
    this.#suspension = suspension
    this.#paused = new Set(
      fleet.table
        .live()
        .filter(isPausedForDisk)
        .map(({ id }) => id),
    )
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#working
  }

  #look(): void {
    this.#disk.look()
    const isNeeded = this.#disk.low !== undefined || this.#disk.isNear || this.#paused.size > 0
    if (!isNeeded || this.#working || this.#fleet.closed) return
    this.#working = this.#relieve()
      .catch((error) => this.#fleet.log.error({ error }, 'disk relief failed; it is retried'))
      .finally(() => {
        this.#working = undefined
      })
  }

  async #relieve(): Promise<void> {
    if (this.#disk.low === undefined && this.#paused.size > 0) await this.#goOn()
    const growing = this.#disk.isNear ? await this.#growing() : []
    if (this.#disk.isFilling) await Promise.all(growing.map((id) => this.#pause(id)))
    if (this.#disk.low !== undefined) await this.#reclaim()
  }

  /** Sandboxes whose files have grown within the window. */
  async #growing(): Promise<string[]> {
    const running = new Map<string, string>()
    for (const id of this.#fleet.machines.keys()) {
      const record = this.#fleet.table.get(id)
      if (record?.status === 'running') running.set(record.root.layer, id)
    }
    const sizes = await this.#fleet.storage.growing([...running.keys()])
    const now = performance.now()
    this.#samples = [...this.#samples.filter(({ at }) => now - at < WINDOW_MS), { at: now, sizes }]
    // A sandbox that was made or woken meanwhile is only in later samples: what it held then is not growth.
    const before = (layer: string) => this.#samples.find(({ sizes }) => sizes.has(layer))?.sizes.get(layer)
    return [...running].flatMap(([layer, id]) =>
      (sizes.get(layer) ?? 0) - (before(layer) ?? 0) >= GROWN_BYTES ? id : [],
    )
  }

  async #pause(id: string): Promise<void> {
    if (this.#fleet.engine.capabilities.freeze !== true) return
    const also = () => this.#fleet.events.add(id, 'disk_low', { ...this.#disk.info() })
    try {
      await this.#suspension.pause(id, { reason: DISK_LOW, also })
      this.#paused.add(id)
    } catch (error) {
      this.#fleet.log.warn({ error, sandbox: id }, 'a sandbox that fills the disk was not paused')
    }
  }

  async #goOn(): Promise<void> {
    await Promise.all([...this.#paused].map((id) => this.#resume(id)))
  }

  async #resume(id: string): Promise<void> {
    const record = this.#fleet.table.get(id)
    this.#paused.delete(id)
    if (!record || !isPausedForDisk(record)) return
    const also = () => this.#fleet.events.add(id, 'disk_ok', { ...this.#disk.info() })
    await this.#suspension.resume(id, { also }).catch((error) => {
      this.#paused.add(id)
      this.#fleet.log.warn(
        { error, sandbox: id },
        'a sandbox that was paused for the disk could not be resumed; it is retried',
      )
    })
  }

  async #reclaim(): Promise<void> {
    const now = performance.now()
    if (now < this.#reclaimAt) return
    this.#reclaimAt = now + RECLAIM_EVERY_MS
    await this.#fleet.storage.sync()
    if (now < this.#shrinkAt || this.#disk.isFilling) return
    this.#shrinkAt = now + SHRINK_EVERY_MS
    await this.#fleet.storage.giveBack()
  }
}
