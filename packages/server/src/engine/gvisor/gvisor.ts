// Engine `oci`, isolation `gvisor`: every sandbox has its own kernel, a user-space program, and cannot reach the machine's kernel
// directly. A cell gets its root when it is started, so there is nothing to prepare; in return its memory can be saved.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
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
} from '../engine.ts'
import { treeRecords } from '../oci/requests.ts'
import { runtimeRoot } from '../oci/runtime.ts'
import { diskLimit, WallEngine, type WallOptions } from '../oci/wall.ts'
import { gvisorConfig, hostTasks } from './config.ts'
import { Runsc } from './runsc.ts'

export class GvisorEngine extends WallEngine {
  readonly capabilities: EngineCapabilities
  readonly #runsc: Runsc
  /** Limits that changed while a cell was frozen: its kernel gets them when it is thawed. */
  readonly #untold = new Map<string, Limits>()

  constructor(options: WallOptions) {
    // gVisor opens the file itself; locks and watches stay within its kernel and do not reach other sandboxes.
    super(options, 0o755)
    this.#runsc = new Runsc(options.warden, options.instance.runDir)
    this.capabilities = gvisorCapabilities(options.warden)
  }

  override async start(keep: ReadonlyMap<string, string>): Promise<Set<string>> {
    await mkdir(runtimeRoot('runsc', this.instance.runDir), { recursive: true, mode: 0o700 })
    return super.start(keep)
  }

  prepare(cell: Cell): Promise<void> {
    return this.ownSocket(cell)
  }

  bind(cell: Cell, options: BindOptions): Promise<Bound> {
    return this.alone(cell, async (record, uidBase) => {
      if (record.process)
        throw new IsletError('not_supported', 'Isolation gvisor cannot change the root of a sandbox.')
      const { root, hostname, limits, memory } = options
      const directory = this.cells.directory(cell.id)
      const config = gvisorConfig({
        uidBase,
        uidCount: UIDS_PER_CELL,
        rootDir: join(this.instance.runDir, 'warden', 'root'),
        linkDir: cell.linkDir,
        networkNamespace: join(directory, 'net'),
        cgroupsPath: `/${this.instance.cgroup}/${cell.id}`,
        hostname,
        limits: this.within(limits),
      })
      await writeFile(join(directory, 'config.json'), config, { mode: 0o600 })
      const plugged = options.network.enabled ? await this.plug(record) : undefined
      const request = { cell: cell.id, uidBase, layer: root.layer, tree: treeRecords(root) }
      const pid = await this.#runsc.run(directory, { ...request, network: plugged?.network }, memory)
      // The saved kernel has the name and limits of the time it was saved.
      if (memory) await this.#settle(cell, limits, hostname)
      record.process = identify(pid)
      this.cells.write(record)
      return plugged?.bound ?? {}
    })
  }

  async connect(): Promise<Bound> {
    throw notSupported(this.capabilities.networkSwitch)
  }

  /** First gVisor's kernel stops its programs, so that no operation is half done; then the machine freezes gVisor. */
  freeze(cell: Cell): Promise<void> {
    return this.alone(cell, async () => {
      await this.#runsc.pause(cell.id, this.cells.directory(cell.id), true)
      await this.freezeGroup(cell, true)
    })
  }

  thaw(cell: Cell): Promise<void> {
    return this.alone(cell, async () => {
      await this.freezeGroup(cell, false)
      await this.#runsc.pause(cell.id, this.cells.directory(cell.id), false)
      const limits = this.#untold.get(cell.id)
      // A failure does not matter much: the limits that are enforced are outside.
      if (limits) await this.#settle(cell, limits).catch(() => {})
    })
  }

  saveMemory(cell: Cell, directory: string): Promise<void> {
    return this.alone(cell, async () => {
      await chmod(directory, 0o700)
      // gVisor's kernel must run to write; its programs stay stopped.
      await this.freezeGroup(cell, false)
      try {
        await this.#runsc.save(cell.id, this.cells.directory(cell.id), directory)
      } finally {
        await this.freezeGroup(cell, true)
      }
    })
  }

  override async limit(cell: Cell, limits: Limits): Promise<void> {
    await super.limit(cell, { ...limits, pids: hostTasks(limits.pids) })
    await this.alone(cell, async () => {
      // A frozen cell cannot be told.
      if (await this.#runsc.isPaused(cell.id)) this.#untold.set(cell.id, limits)
      else await this.#settle(cell, limits)
    })
  }

  /** Tells gVisor's kernel, which counts processes and reports memory to programs. */
  async #settle(cell: Cell, { memoryBytes, pids }: Limits, hostname?: string): Promise<void> {
    this.#untold.delete(cell.id)
    await this.warden.request('CELL_SETTLE', { cell: cell.id, limits: { memoryBytes, pids }, hostname })
  }

  protected override forget(id: string): Promise<void> {
    this.#untold.delete(id)
    return this.#runsc.forget(id)
  }

  protected override remembered(): Promise<string[]> {
    return this.#runsc.list()
  }
}

export function gvisorCapabilities(warden: Pick<Warden, 'quota'>): EngineCapabilities {
  return {
    engine: 'oci',
    isolation: 'gvisor',
    lateRoot: { missing: 'gVisor cannot change the root of a running sandbox.' },
    wall: true,
    memoryLimit: true,
    memoryKill: { missing: 'gVisor ends the whole sandbox when it passes its memory limit.' },
    cpuLimit: true,
    pidsLimit: true,
    diskLimit: diskLimit(warden),
    network: true,
    networkSwitch: {
      missing: 'gVisor sets up the network when a sandbox starts; it cannot be switched later.',
    },
    freeze: true,
    memoryCheckpoint: true,
    users: true,
    setuid: {
      missing: 'This gVisor does not honour set-user-id bits, so sudo does not work; run as root instead.',
    },
  }
}
