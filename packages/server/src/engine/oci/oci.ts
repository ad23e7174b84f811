// Engine `oci`, isolation `namespace`: cells made by an OCI runtime, roots and limits given by the warden.
import { writeFileSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { UIDS_PER_CELL } from '../../instance.ts'
import { identify } from '../../lib/proc.ts'
import type { Warden } from '../../warden/warden.ts'
import {
  type BindOptions,
  type Bound,
  type Cell,
  type EngineCapabilities,
  type Limits,
  notSupported,
  type PrepareOptions,
} from '../engine.ts'
import { cellConfig, SKELETON } from './config.ts'
import { etcRecords, treeRecords } from './requests.ts'
import { Runtime, type RuntimeName } from './runtime.ts'
import { makeView, writeView } from './view.ts'
import { diskLimit, WallEngine, type WallOptions } from './wall.ts'

export interface OciOptions extends WallOptions {
  runtime?: RuntimeName
}

/** How many recent sandboxes `#wantNetwork` averages over, roughly. */
const DEMAND_MEMORY = 8

export class OciEngine extends WallEngine {
  readonly capabilities: EngineCapabilities
  readonly #runtime: Runtime
  readonly #rootDir: string
  /** The share of recent sandboxes with a network. If it is most of them, warm cells get one ahead, which makes bind faster. */
  #wantNetwork = 0

  constructor(options: OciOptions) {
    super(options, 0o711)
    this.#runtime = new Runtime(options.warden, options.runtime ?? 'runc', options.instance.runDir)
    this.#rootDir = join(options.instance.runDir, 'root')
    this.capabilities = ociCapabilities(options.warden)
  }

  override async start(keep: ReadonlyMap<string, string>): Promise<Set<string>> {
    await this.#makeSkeleton()
    return super.start(keep)
  }

  prepare(cell: Cell, options: PrepareOptions = {}): Promise<void> {
    return this.alone(cell, async (record, uidBase) => {
      const directory = this.cells.directory(cell.id)
      const config = cellConfig({
        uidBase,
        uidCount: UIDS_PER_CELL,
        userNamespace: join(directory, 'user'),
        rootDir: this.#rootDir,
        linkDir: cell.linkDir,
        cgroupsPath: `/${this.instance.cgroup}/${cell.id}`,
      })
      await this.ownSocket(cell)
      makeView(cell.linkDir)
      writeFileSync(join(directory, 'config.json'), config, { mode: 0o600 })
      const isAhead = options.background && this.#wantNetwork > 0.5
      // If it fails, bind makes the network or reports why not.
      const plugged = isAhead ? await this.plug(record).catch(() => undefined) : undefined
      const pid = await this.#runtime.start(directory, {
        cell: cell.id,
        uidBase,
        background: options.background ? 1 : 0,
        network: plugged?.network,
      })
      record.process = identify(pid)
      this.cells.write(record)
    })
  }

  bind(cell: Cell, options: BindOptions): Promise<Bound> {
    return this.alone(cell, async (record, uidBase) => {
      if (!record.process)
        throw new IsletError('internal', `The cell ${cell.id} was bound before it was prepared.`)
      if (options.memory) throw notSupported(this.capabilities.memoryCheckpoint)
      const { root, hostname, limits, network } = options
      this.#wantNetwork += (Number(network.enabled) - this.#wantNetwork) / DEMAND_MEMORY
      const plugged = network.enabled ? await this.plug(record) : undefined
      writeView(cell.linkDir, limits)
      const { etc: hasEtc } = await this.warden.request('BIND', {
        pid: record.process.pid,
        uidBase,
        layer: root.layer,
        tree: treeRecords(root),
        hostname,
        cgroup: cell.id,
        limits: this.within(limits),
        network: plugged?.network,
        etc: etcRecords(options.etc?.(plugged?.bound ?? {})),
      })
      // After BIND: if the server dies before, the record still has the previous layer, or none.
      if (options.ahead || record.layer !== undefined)
        this.cells.write(Object.assign(record, { layer: root.layer }))
      return { ...plugged?.bound, hasEtc: hasEtc === 1 }
    })
  }

  connect(cell: Cell, { enabled }: BindOptions['network']): Promise<Bound> {
    return this.alone(cell, async (record, uidBase) => {
      if (!record.process)
        throw new IsletError('internal', `The cell ${cell.id} was connected before it was prepared.`)
      const { pid } = record.process
      const plugged = enabled ? await this.plug(record) : undefined
      await this.warden.request('CELL_NETWORK', { pid, uidBase, network: plugged?.network })
      if (!enabled) this.unplugged(record)
      return plugged?.bound ?? {}
    })
  }

  override async limit(cell: Cell, limits: Limits): Promise<void> {
    await super.limit(cell, limits)
    // The limits are set even if the view cannot be updated.
    await this.show(cell, limits).catch(() => {})
  }

  async show(cell: Cell, limits: Limits): Promise<void> {
    const { memoryBytes } = await this.usage(cell)
    writeView(cell.linkDir, limits, memoryBytes)
  }

  freeze(cell: Cell): Promise<void> {
    return this.freezeGroup(cell, true)
  }

  thaw(cell: Cell): Promise<void> {
    return this.freezeGroup(cell, false)
  }

  async saveMemory(): Promise<void> {
    throw notSupported(this.capabilities.memoryCheckpoint)
  }

  protected override async forget(id: string): Promise<void> {
    this.#runtime.forget(id)
  }

  protected override remembered(): Promise<string[]> {
    return this.#runtime.list()
  }

  async #makeSkeleton(): Promise<void> {
    for (const name of SKELETON) await mkdir(join(this.#rootDir, name), { recursive: true })
    for (const path of ['', ...SKELETON]) await chmod(join(this.#rootDir, path), 0o755)
  }
}

export function ociCapabilities(warden: Pick<Warden, 'quota'>): EngineCapabilities {
  return {
    engine: 'oci',
    isolation: 'namespace',
    lateRoot: true,
    wall: true,
    memoryLimit: true,
    memoryKill: true,
    cpuLimit: true,
    pidsLimit: true,
    diskLimit: diskLimit(warden),
    network: true,
    networkSwitch: true,
    freeze: true,
    memoryCheckpoint: { missing: 'runc cannot save the memory of a running sandbox.' },
    users: true,
    setuid: true,
  }
}
