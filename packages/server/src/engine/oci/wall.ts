// The common base of the isolations of engine `oci`: cells on disk, uid ranges, cgroups, the network, and their cleanup.
import { chmodSync, chownSync } from 'node:fs'
import type { Instance } from '../../instance.ts'
import { isRunning } from '../../lib/proc.ts'
import type { NetworkRecord } from '../../warden/messages.gen.ts'
import type { Warden } from '../../warden/warden.ts'
import { type CellRecord, Cells } from '../cells.ts'
import {
  type BindOptions,
  type Bound,
  type Capability,
  type Cell,
  cellGone,
  type Engine,
  type EngineCapabilities,
  type Limits,
  type PrepareOptions,
  type Usage,
} from '../engine.ts'
import { killRuntimes, removeCgroups } from '../teardown.ts'
import { INSIDE_DIR } from './config.ts'
import type { Upstream } from './dns.ts'
import { type Ceilings, ceilingOf, raiseMachineLimits } from './machine-room.ts'
import { Network } from './network.ts'
import { Ranges } from './ranges.ts'
import { isNotFound, removeCgroup, usageOf } from './requests.ts'
import { hasRoot, isCellProcess, sweep } from './sweep.ts'

export interface WallOptions {
  instance: Instance
  warden: Warden
  log: EngineLog
  /** The guest's static binary, from `nativeBinary('guest')`. */
  guest: string
  /** The most that all sandboxes together may use; default: `auto` for each. */
  ceilings?: Ceilings
  /** Private address ranges that sandboxes may reach. */
  allowRanges?: readonly string[]
  nameservers?: readonly Upstream[]
}

/** How often sandboxes that burn CPU time are made to yield (CGROUP_YIELD). */
const YIELD_EVERY_MS = 100

export interface EngineLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export abstract class WallEngine implements Engine {
  abstract readonly capabilities: EngineCapabilities
  protected readonly instance: Instance
  protected readonly warden: Warden
  protected readonly cells: Cells
  readonly #log: EngineLog
  readonly #ceilings: Ceilings
  /** For the CPU time of all sandboxes, in thousandths of a core; 0: none. */
  #cpuCeiling = 0
  #yielding: NodeJS.Timeout | undefined
  readonly #ranges: Ranges
  readonly #network: Network
  readonly #records = new Map<string, CellRecord>()
  /** The operation in progress on each cell; destroy waits for it. */
  readonly #busy = new Map<string, Promise<unknown>>()
  readonly #dying = new Map<string, Promise<void>>()

  /** `guestMode`: see Cells. */
  constructor(options: WallOptions, guestMode: 0o755 | 0o711) {
    const { instance, warden, log } = options
    this.instance = instance
    this.warden = warden
    this.#log = log
    this.#ceilings = options.ceilings ?? { memory: 'auto', cpu: 'auto', pids: 'auto' }
    this.cells = new Cells(instance.runDir, options.guest, { insideDir: INSIDE_DIR, guestMode })
    this.#ranges = new Ranges(instance)
    this.#network = new Network({ ...options, plan: instance, warden, log })
  }

  abstract prepare(cell: Cell, options?: PrepareOptions): Promise<void>
  abstract bind(cell: Cell, options: BindOptions): Promise<Bound>
  abstract connect(cell: Cell, network: BindOptions['network']): Promise<Bound>
  abstract freeze(cell: Cell): Promise<void>
  abstract thaw(cell: Cell): Promise<void>
  abstract saveMemory(cell: Cell, directory: string): Promise<void>
  /** Removes the runtime's record of a cell. */
  protected abstract forget(id: string): Promise<void>
  /** The ids of cells with a record of the runtime. */
  protected abstract remembered(): Promise<string[]>

  async start(keep: ReadonlyMap<string, string>): Promise<Set<string>> {
    await killRuntimes(this.instance.runDir)
    await this.#makeRoom()
    const alive = new Set<string>()
    for (const id of await this.cells.list()) {
      const record = this.cells.read(id)
      // A server with another isolation cannot use the cells of the previous one.
      if (record?.index === undefined || record.isolation !== this.#isolation) continue
      const layer = keep.get(id)
      if (layer === undefined || !this.#isUsable(record, layer)) continue
      this.#records.set(id, record)
      this.#ranges.hold(record.index)
      alive.add(id)
    }
    const kept = [...alive].map((id) => this.#records.get(id)!)
    await sweep({
      warden: this.warden,
      cells: this.cells,
      keep: alive,
      veths: kept.map((record) => this.#veth(record)),
    })
    for (const id of await this.remembered()) if (!alive.has(id)) await this.forget(id)
    if (kept.some((record) => record.network)) await this.#network.ensure()
    return alive
  }

  room(): number {
    return this.#ranges.left
  }

  async allocate(id: string): Promise<Cell> {
    const index = this.#ranges.take()
    try {
      const record: CellRecord = {
        id,
        index,
        isolation: this.#isolation,
        createdAt: new Date().toISOString(),
      }
      const cell = await this.cells.create(record)
      this.#records.set(id, record)
      return cell
    } catch (error) {
      this.#ranges.free(index)
      throw error
    }
  }

  async adopt(id: string): Promise<Cell> {
    if (!this.#records.has(id)) throw cellGone(id)
    return this.cells.cell(id)
  }

  /** The sandbox's root owns the socket; its other users may enter the directory, and other users of this machine may not. */
  async ownSocket(cell: Cell): Promise<void> {
    const owner = this.#ranges.uidBase(this.#record(cell).index!)
    const socket = this.cells.socket(cell.id)
    const directory = this.cells.directory(cell.id)
    chownSync(directory, 0, owner)
    chownSync(cell.linkDir, owner, owner)
    chownSync(socket, owner, owner)
    chmodSync(directory, 0o710)
    chmodSync(cell.linkDir, 0o711)
    chmodSync(socket, 0o600)
  }

  async limit(cell: Cell, limits: Limits): Promise<void> {
    await groupOf(cell, (cgroup) =>
      this.warden.request('CGROUP_LIMIT', { cgroup, limits: this.within(limits) }),
    )
  }

  async reclaim(cell: Cell): Promise<void> {
    await groupOf(cell, (cgroup) => this.warden.request('CGROUP_RECLAIM', { cgroup }))
  }

  async usage(cell: Cell): Promise<Usage> {
    return usageOf(await groupOf(cell, (cgroup) => this.warden.request('CGROUP_STAT', { cgroup })))
  }

  async alive(cell: Cell): Promise<boolean> {
    const process = this.#records.get(cell.id)?.process
    return process !== undefined && isRunning(process)
  }

  /** Concurrent calls share one run: a range that is freed twice could free another cell's range. */
  destroy(cell: Cell): Promise<void> {
    let dying = this.#dying.get(cell.id)
    if (!dying) {
      dying = this.#destroy(cell).finally(() => this.#dying.delete(cell.id))
      this.#dying.set(cell.id, dying)
    }
    return dying
  }

  async close(options: { all?: boolean } = {}): Promise<void> {
    clearInterval(this.#yielding)
    await Promise.allSettled(this.#busy.values())
    await this.#network.close(options)
    if (!options.all) return
    for (const id of this.#records.keys()) await this.destroy(this.cells.cell(id))
    await removeCgroups(this.instance.cgroup)
  }

  /** The limits as requested of the warden. On cgroup v1 a group may not have more CPU time than its parent group. */
  protected within({ memoryBytes, cpuMillis, pids }: Limits): Limits {
    const ceiling = this.#cpuCeiling
    return { memoryBytes, cpuMillis: ceiling ? Math.min(cpuMillis || ceiling, ceiling) : cpuMillis, pids }
  }

  /** Runs an operation that destroy waits for. */
  protected async alone<T>(
    cell: Cell,
    work: (record: CellRecord, uidBase: number) => Promise<T>,
  ): Promise<T> {
    const record = this.#record(cell)
    const done = work(record, this.#ranges.uidBase(record.index!))
    this.#busy.set(cell.id, done)
    try {
      return await done
    } finally {
      if (this.#busy.get(cell.id) === done) this.#busy.delete(cell.id)
    }
  }

  protected async freezeGroup(cell: Cell, frozen: boolean): Promise<void> {
    await groupOf(cell, (cgroup) => this.warden.request('CGROUP_FREEZE', { cgroup, frozen: frozen ? 1 : 0 }))
  }

  /** Prepares the machine for a cell with a network; returns what the warden and the guest need. */
  protected async plug(record: CellRecord): Promise<{ network: NetworkRecord; bound: Bound }> {
    await this.#network.ensure()
    if (!record.network) this.cells.write(Object.assign(record, { network: true }))
    const { gateway, prefix } = this.instance
    const address = this.#ranges.address(record.index!)
    const network = { veth: this.#veth(record), address, prefix, gateway }
    return { network, bound: { address, nameserver: gateway } }
  }

  /** Records that the cell has no veth any more. */
  protected unplugged(record: CellRecord): void {
    if (!record.network) return
    delete record.network
    this.cells.write(record)
  }

  async #makeRoom(): Promise<void> {
    await raiseMachineLimits(this.#log)
    const limits = ceilingOf(this.#ceilings)
    this.#cpuCeiling = limits.cpuMillis
    await this.warden.request('CGROUP_CEILING', { limits }).catch((error) => {
      this.#log.warn(
        { error },
        'There is no ceiling for all sandboxes together: they could use up this machine.',
      )
    })
    const giveWay = () => this.warden.request('CGROUP_YIELD', {}).catch(() => {})
    this.#yielding = setInterval(giveWay, YIELD_EVERY_MS).unref()
  }

  async #destroy(cell: Cell): Promise<void> {
    await this.#busy.get(cell.id)?.catch(() => {})
    const record = this.#records.get(cell.id)
    if (!record) return
    await removeCgroup(this.warden, cell.id)
    // The kernel deletes the veth with its namespace, but some time later.
    if (record.network) {
      const address = this.#ranges.address(record.index!)
      await this.warden.request('VETH_DELETE', { veth: this.#veth(record), address })
    }
    await this.forget(cell.id)
    this.cells.remove(cell.id)
    this.#records.delete(cell.id)
    this.#ranges.free(record.index!)
  }

  /** Whether the cell lives and has its root. A sandbox's record names its cell before the cell gets its root. */
  #isUsable({ process, index, layer: given }: CellRecord, layer: string): boolean {
    if (given !== undefined && given !== layer) return false
    if (!isCellProcess(process, this.#ranges.uidBase(index!))) return false
    return this.capabilities.lateRoot !== true || hasRoot(process!)
  }

  get #isolation(): CellRecord['isolation'] {
    return this.capabilities.isolation === 'gvisor' ? 'gvisor' : undefined
  }

  #record(cell: Cell): CellRecord {
    const record = this.#records.get(cell.id)
    if (!record) throw cellGone(cell.id)
    return record
  }

  /** At most 15 bytes, unique to this slot. */
  #veth(record: CellRecord): string {
    return `${this.instance.bridge}v${record.index}`
  }
}

/** A request about the cgroup of a cell, which disappears with the cell at any time. */
async function groupOf<T>(cell: Cell, request: (cgroup: string) => Promise<T>): Promise<T> {
  try {
    return await request(cell.id)
  } catch (error) {
    if (!isNotFound(error)) throw error
    throw cellGone(cell.id, error)
  }
}

export function diskLimit(warden: Pick<Warden, 'quota'>): Capability {
  return warden.quota || { missing: 'The data directory is not on btrfs, which disk limits need.' }
}
