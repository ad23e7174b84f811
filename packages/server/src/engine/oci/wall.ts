// What all isolations of engine `oci` share: cells on disk, uid ranges, cgroups, the network, and taking them away again.
import { chmodSync, chownSync } from 'node:fs'
import { IsletError } from '@islet/contract'
import type { Instance } from '../../instance.ts'
import { isRunning } from '../../lib/proc.ts'
import { type Warden, WardenError } from '../../warden/warden.ts'
import { type CellRecord, Cells } from '../cells.ts'
import type {
  BindOptions,
  Bound,
  Capability,
  Cell,
  Engine,
  EngineCapabilities,
  Limits,
  PrepareOptions,
  Usage,
} from '../engine.ts'
import { killRuntimes, removeCgroups } from '../teardown.ts'
import { INSIDE_DIR } from './config.ts'
import type { Upstream } from './dns.ts'
import { type Ceilings, ceilingOf, raiseMachineLimits } from './machine-room.ts'
import { Network } from './network.ts'
import { Ranges } from './ranges.ts'
import { type NetworkRequest, removeCgroup, usageOf } from './requests.ts'
import { hasRoot, isCellProcess, sweep } from './sweep.ts'

export interface WallOptions {
  instance: Instance
  warden: Warden
  log: EngineLog
  /** The guest's static binary, from `nativeBinary('guest')`. */
  guest: string
  /** What all sandboxes together may take; default: `auto` for each. */
  ceilings?: Ceilings
  /** Private ranges that sandboxes may reach all the same. */
  allowRanges?: readonly string[]
  nameservers?: readonly Upstream[]
}

/** How long a sandbox burns CPU time before it gives way to those that do not. */
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
  /** Of CPU time, in thousandths of a core; 0: none. */
  #cpuCeiling = 0
  #yielding: NodeJS.Timeout | undefined
  readonly #ranges: Ranges
  readonly #network: Network
  readonly #records = new Map<string, CellRecord>()
  /** What is being done to a cell; destroy waits for it. */
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
  /** Removes what the runtime remembers of a cell. */
  protected abstract forget(id: string): Promise<void>
  /** The ids of cells that the runtime remembers. */
  protected abstract remembered(): Promise<string[]>

  async start(keep: ReadonlyMap<string, string>): Promise<Set<string>> {
    await killRuntimes(this.instance.runDir)
    await this.#makeRoom()
    const alive = new Set<string>()
    for (const id of await this.cells.list()) {
      const record = this.cells.read(id)
      // A server that was told to use another isolation cannot go on with what the one before made.
      if (record?.index === undefined || record.isolation !== this.#isolation) continue
      const layer = keep.get(id)
      if (layer === undefined || !(await this.#isUsable(record, layer))) continue
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
    if (!this.#records.has(id)) throw new IsletError('sandbox_lost', `The cell ${id} is gone.`)
    return this.cells.cell(id)
  }

  /** Root inside gets the socket; others inside may enter the directory, and nobody else on this machine. */
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
    const { memoryBytes, cpuMillis, pids } = this.within(limits)
    await groupOf(cell, (cgroup) =>
      this.warden.request('CGROUP_LIMIT', { cgroup, limits: { memoryBytes, cpuMillis, pids } }),
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

  /** Callers share one: a range that is given back twice could by then be another cell's. */
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

  /** On cgroup v1 a group may not have more CPU time than the one above it. */
  protected within(limits: Limits): Limits {
    const cpuMillis = this.#cpuCeiling && Math.min(limits.cpuMillis || this.#cpuCeiling, this.#cpuCeiling)
    return { ...limits, cpuMillis: cpuMillis || limits.cpuMillis }
  }

  /** Runs something that destroy waits for. */
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

  /** Makes the machine ready for a cell with a network, and says what the warden and the guest need to know. */
  protected async plug(record: CellRecord): Promise<{ network: NetworkRequest; bound: Bound }> {
    await this.#network.ensure()
    if (!record.network) this.cells.write(Object.assign(record, { network: true }))
    const { gateway, prefix } = this.instance
    const address = this.#ranges.address(record.index!)
    const network = { veth: this.#veth(record), address, prefix, gateway }
    return { network, bound: { address, nameserver: gateway } }
  }

  /** It has no veth any more. */
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
      this.#log.warn({ error }, 'Nothing bounds what all sandboxes together take of this machine.')
    })
    const giveWay = () => this.warden.request('CGROUP_YIELD', {}).catch(() => {})
    this.#yielding = setInterval(giveWay, YIELD_EVERY_MS).unref()
  }

  async #destroy(cell: Cell): Promise<void> {
    await this.#busy.get(cell.id)?.catch(() => {})
    const record = this.#records.get(cell.id)
    if (!record) return
    await removeCgroup(this.warden, cell.id)
    // The namespace takes it along, but some time later.
    if (record.network) {
      const address = this.#ranges.address(record.index!)
      await this.warden.request('VETH_DELETE', { veth: this.#veth(record), address })
    }
    await this.forget(cell.id)
    this.cells.remove(cell.id)
    this.#records.delete(cell.id)
    this.#ranges.free(record.index!)
  }

  /** It lives, and a server before gave it its root: the records of a sandbox name its cell before that. */
  async #isUsable({ process, index, layer: given }: CellRecord, layer: string): Promise<boolean> {
    if (given !== undefined && given !== layer) return false
    if (!(await isCellProcess(process, this.#ranges.uidBase(index!)))) return false
    return this.capabilities.lateRoot !== true || hasRoot(process!)
  }

  get #isolation(): CellRecord['isolation'] {
    return this.capabilities.isolation === 'gvisor' ? 'gvisor' : undefined
  }

  #record(cell: Cell): CellRecord {
    const record = this.#records.get(cell.id)
    if (!record) throw new IsletError('sandbox_lost', `The cell ${cell.id} is gone.`)
    return record
  }

  /** At most 15 bytes, and of this slot alone. */
  #veth(record: CellRecord): string {
    return `${this.instance.bridge}v${record.index}`
  }
}

/** A request about the group of a cell. It goes with the cell, which may end at any moment. */
async function groupOf<T>(cell: Cell, request: (cgroup: string) => Promise<T>): Promise<T> {
  try {
    return await request(cell.id)
  } catch (error) {
    if (!(error instanceof WardenError && error.kind === 'NOT_FOUND')) throw error
    throw new IsletError('sandbox_lost', `The cell ${cell.id} is gone.`, { cause: error })
  }
}

export function diskLimit(warden: Pick<Warden, 'quota'>): Capability {
  return warden.quota || { missing: 'The data directory is not on btrfs, which can count and bound.' }
}
