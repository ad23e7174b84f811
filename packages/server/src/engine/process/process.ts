// Engine `process`: the guest as a plain process in a workspace directory. There is no wall: for development and
// trusted code only.
//
//   <data>/workspaces/<layer>/    where its commands start
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import type { Instance } from '../../instance.ts'
import {
  type BindOptions,
  type Bound,
  type Capability,
  type Engine,
  type EngineCapabilities,
  notSupported,
  type Shell,
  type Usage,
} from '../engine.ts'
import { GUEST_OOM_SCORE } from '../oom.ts'
import { identify, isRunning } from '../proc.ts'
import { type ShellRecord, Shells } from '../shells.ts'
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
  readonly #shells: Shells
  readonly #records = new Map<string, ShellRecord>()
  readonly #peaks = new Map<string, number>()

  constructor({ instance, log, guest }: ProcessOptions) {
    this.#instance = instance
    this.#log = log
    this.#shells = new Shells(instance.runDir, guest)
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
    for (const id of await this.#shells.list()) {
      const record = this.#shells.read(id)
      if (record?.process && keep.has(id) && (await isRunning(record.process))) {
        this.#records.set(id, record)
        alive.add(id)
        continue
      }
      if (record?.process) await killTree(record.process)
      this.#shells.remove(id)
    }
    return alive
  }

  async allocate(id: string): Promise<Shell> {
    const record: ShellRecord = { id, createdAt: new Date().toISOString() }
    const shell = await this.#shells.create(record)
    this.#records.set(id, record)
    return shell
  }

  async prepare(shell: Shell): Promise<void> {
    await this.ownSocket(shell)
  }

  async bind(shell: Shell, { root, memory }: BindOptions): Promise<Bound> {
    if (memory) throw notSupported(this.capabilities.memoryCheckpoint)
    const record = this.#record(shell)
    if (record.process)
      throw new IsletError('not_supported', 'Engine process cannot change the root of a sandbox.')
    const workspace = join(this.#instance.dataDir, 'workspaces', root.layer)
    await mkdir(workspace, { recursive: true })
    // Its own session, so that neither a signal to the server nor its terminal's end reaches it.
    const child = spawn(join(shell.linkDir, 'guest'), ['--socket', this.#shells.socket(shell.id)], {
      cwd: workspace,
      env: { PATH: process.env.PATH },
      stdio: 'ignore',
      detached: true,
    })
    await once(child, 'spawn')
    child.unref()
    await writeFile(`/proc/${child.pid}/oom_score_adj`, String(GUEST_OOM_SCORE)).catch(() => {})
    record.process = await identify(child.pid!)
    this.#shells.write(record)
    return { workspace }
  }

  async adopt(id: string): Promise<Shell> {
    if (!this.#records.has(id)) throw new IsletError('sandbox_lost', `The shell ${id} is gone.`)
    return this.#shells.shell(id)
  }

  async ownSocket(shell: Shell): Promise<void> {
    await Promise.all([chmod(shell.linkDir, 0o711), chmod(this.#shells.socket(shell.id), 0o600)])
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

  async usage(shell: Shell): Promise<Usage> {
    const { process } = this.#record(shell)
    const usage = process ? await treeUsage(process.pid) : { memoryBytes: 0, cpuUsec: 0, pids: 0 }
    const memoryPeakBytes = Math.max(usage.memoryBytes, this.#peaks.get(shell.id) ?? 0)
    this.#peaks.set(shell.id, memoryPeakBytes)
    return { ...usage, memoryPeakBytes, oomKills: 0 }
  }

  async alive(shell: Shell): Promise<boolean> {
    const process = this.#records.get(shell.id)?.process
    return process !== undefined && (await isRunning(process))
  }

  async destroy(shell: Shell): Promise<void> {
    const record = this.#records.get(shell.id)
    if (!record) return
    if (record.process) await killTree(record.process)
    this.#shells.remove(shell.id)
    this.#records.delete(shell.id)
    this.#peaks.delete(shell.id)
  }

  async close({ all = false } = {}): Promise<void> {
    if (!all) return
    for (const id of this.#records.keys()) await this.destroy(this.#shells.shell(id))
  }

  #record(shell: Shell): ShellRecord {
    const record = this.#records.get(shell.id)
    if (!record) throw new IsletError('sandbox_lost', `The shell ${shell.id} is gone.`)
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
