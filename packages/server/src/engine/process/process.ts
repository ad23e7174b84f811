// Engine `process`: the guest is a plain process in a workspace directory. There is no wall, so it is for development and
// trusted code only.
//
//   <data>/workspaces/<layer>/    where its commands start
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import type { Instance } from '../../instance.ts'
import { identify, isRunning } from '../../lib/proc.ts'
import { type CellRecord, Cells } from '../cells.ts'
import {
  type BindOptions,
  type Bound,
  type Capability,
  type Cell,
  cellGone,
  type Engine,
  type EngineCapabilities,
  notSupported,
  type Usage,
} from '../engine.ts'
import { GUEST_OOM_SCORE } from '../oom.ts'
import { killTree, treeUsage } from '../tree.ts'

export interface ProcessOptions {
  instance: Instance
  log: { warn(fields: object, message: string): void }
  /** The guest's static binary, from `nativeBinary('guest')`. */
  guest: string
}

export class ProcessEngine implements Engine {
  readonly capabilities = processCapabilities()
  readonly #instance: Instance
  readonly #log: ProcessOptions['log']
  readonly #cells: Cells
  readonly #records = new Map<string, CellRecord>()
  readonly #peaks = new Map<string, number>()

  constructor({ instance, log, guest }: ProcessOptions) {
    this.#instance = instance
    this.#log = log
    this.#cells = new Cells(instance.runDir, guest)
  }

  async start(keep: ReadonlyMap<string, string>): Promise<Set<string>> {
    if (process.platform !== 'linux') {
      throw new IsletError('not_supported', `The guest is a Linux program; this is ${process.platform}.`, {
        hint: 'Run Islet on Linux, or in a Linux virtual machine.',
      })
    }
    this.#log.warn(
      { engine: 'process' },
      'NO WALL: engine process runs commands as plain processes of this machine.',
    )
    const alive = new Set<string>()
    for (const id of await this.#cells.list()) {
      const record = this.#cells.read(id)
      if (record?.process && keep.has(id) && isRunning(record.process)) {
        this.#records.set(id, record)
        alive.add(id)
        continue
      }
      if (record?.process) await killTree(record.process)
      this.#cells.remove(id)
    }
    return alive
  }

  async allocate(id: string): Promise<Cell> {
    const record: CellRecord = { id, createdAt: new Date().toISOString() }
    const cell = await this.#cells.create(record)
    this.#records.set(id, record)
    return cell
  }

  async prepare(cell: Cell): Promise<void> {
    await this.ownSocket(cell)
  }

  async bind(cell: Cell, { root, memory }: BindOptions): Promise<Bound> {
    if (memory) throw notSupported(this.capabilities.memoryCheckpoint)
    const record = this.#record(cell)
    if (record.process)
      throw new IsletError('not_supported', 'Engine process cannot change the root of a sandbox.')
    const workspace = join(this.#instance.dataDir, 'workspaces', root.layer)
    await mkdir(workspace, { recursive: true })
    // Its own session, so that signals to the server and the end of its terminal do not reach it.
    const child = spawn(join(cell.linkDir, 'guest'), ['--socket', this.#cells.socket(cell.id)], {
      cwd: workspace,
      env: { PATH: process.env.PATH },
      stdio: 'ignore',
      detached: true,
    })
    await once(child, 'spawn')
    child.unref()
    await writeFile(`/proc/${child.pid}/oom_score_adj`, String(GUEST_OOM_SCORE)).catch(() => {})
    record.process = identify(child.pid!)
    this.#cells.write(record)
    return { workspace }
  }

  async adopt(id: string): Promise<Cell> {
    if (!this.#records.has(id)) throw cellGone(id)
    return this.#cells.cell(id)
  }

  async ownSocket(cell: Cell): Promise<void> {
    await Promise.all([chmod(cell.linkDir, 0o711), chmod(this.#cells.socket(cell.id), 0o600)])
  }

  async limit(): Promise<void> {
    throw notSupported(this.capabilities.memoryLimit)
  }

  async connect(): Promise<Bound> {
    throw notSupported(this.capabilities.networkSwitch)
  }

  async freeze(): Promise<void> {
    throw notSupported(this.capabilities.freeze)
  }

  async thaw(): Promise<void> {
    throw notSupported(this.capabilities.freeze)
  }

  async reclaim(): Promise<void> {}

  async saveMemory(): Promise<void> {
    throw notSupported(this.capabilities.memoryCheckpoint)
  }

  async usage(cell: Cell): Promise<Usage> {
    const { process } = this.#record(cell)
    const usage = process ? await treeUsage(process.pid) : { memoryBytes: 0, cpuUsec: 0, pids: 0 }
    const memoryPeakBytes = Math.max(usage.memoryBytes, this.#peaks.get(cell.id) ?? 0)
    this.#peaks.set(cell.id, memoryPeakBytes)
    return { ...usage, memoryPeakBytes, oomKills: 0 }
  }

  async alive(cell: Cell): Promise<boolean> {
    const process = this.#records.get(cell.id)?.process
    return process !== undefined && isRunning(process)
  }

  async destroy(cell: Cell): Promise<void> {
    const record = this.#records.get(cell.id)
    if (!record) return
    if (record.process) await killTree(record.process)
    this.#cells.remove(cell.id)
    this.#records.delete(cell.id)
    this.#peaks.delete(cell.id)
  }

  async close({ all = false } = {}): Promise<void> {
    if (!all) return
    for (const id of this.#records.keys()) await this.destroy(this.#cells.cell(id))
  }

  #record(cell: Cell): CellRecord {
    const record = this.#records.get(cell.id)
    if (!record) throw cellGone(cell.id)
    return record
  }
}

export function processCapabilities(): EngineCapabilities {
  const unlimited: Capability = { missing: 'Engine process sets no limits.' }
  const machines: Capability = {
    missing: 'Commands use the network of the machine; it cannot be turned off.',
  }
  return {
    engine: 'process',
    isolation: 'none',
    lateRoot: { missing: 'A plain process cannot get another root.' },
    wall: { missing: 'Engine process has no wall.' },
    memoryLimit: unlimited,
    memoryKill: unlimited,
    cpuLimit: unlimited,
    pidsLimit: unlimited,
    diskLimit: unlimited,
    network: machines,
    networkSwitch: machines,
    freeze: { missing: 'Engine process cannot freeze a sandbox.' },
    memoryCheckpoint: { missing: 'Engine process cannot save memory.' },
    setuid: { missing: 'Whether sudo works is up to the machine.' },
    users: { missing: 'Every command runs as the user of the server.' },
  }
}
