// Engine `oci`, isolation `namespace`: shells made by an OCI runtime, roots and limits given by the warden.
import { chmod, chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { type Instance, UIDS_PER_SHELL } from '../../instance.ts'
import type { Warden } from '../../warden/warden.ts'
import {
  type BindOptions,
  type Bound,
  type Capability,
  type Engine,
  type EngineCapabilities,
  type Limits,
  notSupported,
  type Shell,
  type Usage,
} from '../engine.ts'
import { identify, isRunning } from '../proc.ts'
import { type ShellRecord, Shells } from '../shells.ts'
import { killRuntimes, removeCgroups } from '../teardown.ts'
import { INSIDE_DIR, SKELETON, shellConfig } from './config.ts'
import type { Upstream } from './dns.ts'
import { Network } from './network.ts'
import { Ranges } from './ranges.ts'
import { bindRequest, removeCgroup, usageOf } from './requests.ts'
import { Runtime, type RuntimeName } from './runtime.ts'
import { isShellProcess, sweep } from './sweep.ts'

export interface OciOptions {
  instance: Instance
  warden: Warden
  log: EngineLog
  /** The guest's static binary, from `nativeBinary('guest')`. */
  guest: string
  runtime?: RuntimeName
  /** Private ranges that sandboxes may reach all the same. */
  allowRanges?: readonly string[]
  nameservers?: readonly Upstream[]
}

export interface EngineLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export class OciEngine implements Engine {
  readonly capabilities: EngineCapabilities
  readonly #instance: Instance
  readonly #warden: Warden
  readonly #shells: Shells
  readonly #ranges: Ranges
  readonly #runtime: Runtime
  readonly #network: Network
  readonly #rootDir: string
  readonly #records = new Map<string, ShellRecord>()
  /** What is being done to a shell; destroy waits for it. */
  readonly #busy = new Map<string, Promise<unknown>>()
  readonly #dying = new Map<string, Promise<void>>()

  constructor(options: OciOptions) {
    const { instance, warden, log } = options
    this.#instance = instance
    this.#warden = warden
    this.#shells = new Shells(instance.runDir, options.guest, INSIDE_DIR)
    this.#ranges = new Ranges(instance)
    this.#runtime = new Runtime(warden, options.runtime ?? 'runc', instance.runDir)
    this.#network = new Network({ ...options, plan: instance, warden, log })
    this.#rootDir = join(instance.runDir, 'root')
    this.capabilities = ociCapabilities(warden)
  }

  async start(keep: readonly string[]): Promise<Set<string>> {
    await this.#makeSkeleton()
    await killRuntimes(this.#instance.runDir)
    await this.#runtime.forgetAll()
    const alive = new Set<string>()
    for (const id of await this.#shells.list()) {
      const record = await this.#shells.read(id)
      if (record?.index === undefined) continue
      if (!keep.includes(id) || !(await isShellProcess(record.process, this.#ranges.uidBase(record.index))))
        continue
      this.#records.set(id, record)
      this.#ranges.hold(record.index)
      alive.add(id)
    }
    const kept = [...alive].map((id) => this.#records.get(id)!)
    await sweep({
      warden: this.#warden,
      shells: this.#shells,
      keep: alive,
      veths: kept.map((record) => this.#veth(record)),
    })
    if (kept.some((record) => record.network)) await this.#network.ensure()
    return alive
  }

  async allocate(id: string): Promise<Shell> {
    const index = this.#ranges.take()
    try {
      const record: ShellRecord = { id, index, createdAt: new Date().toISOString() }
      const shell = await this.#shells.create(record)
      this.#records.set(id, record)
      return shell
    } catch (error) {
      this.#ranges.free(index)
      throw error
    }
  }

  prepare(shell: Shell): Promise<void> {
    return this.#alone(shell, async (record, uidBase) => {
      const directory = this.#shells.directory(shell.id)
      const config = shellConfig({
        uidBase,
        uidCount: UIDS_PER_SHELL,
        userNamespace: join(directory, 'user'),
        rootDir: this.#rootDir,
        linkDir: shell.linkDir,
        cgroupsPath: `/${this.#instance.cgroup}/${shell.id}`,
      })
      await Promise.all([
        this.ownSocket(shell),
        writeFile(join(directory, 'config.json'), config, { mode: 0o600 }),
      ])
      const pid = await this.#runtime.start(shell.id, directory, uidBase)
      record.process = await identify(pid)
      await this.#shells.write(record)
    })
  }

  bind(shell: Shell, options: BindOptions): Promise<Bound> {
    return this.#alone(shell, async (record, uidBase) => {
      if (!record.process)
        throw new IsletError('internal', `The shell ${shell.id} was bound before it was prepared.`)
      if (options.memory) throw notSupported(this.capabilities.memoryCheckpoint)
      const request = bindRequest(record.process.pid, uidBase, shell.id, options)
      if (!options.network.enabled) {
        await this.#warden.request('BIND', request)
        return {}
      }
      await this.#network.ensure()
      record.network = true
      await this.#shells.write(record)
      const { gateway, prefix } = this.#instance
      const address = this.#ranges.address(record.index!)
      await this.#warden.request('BIND', {
        ...request,
        network: { veth: this.#veth(record), address, prefix, gateway },
      })
      return { address, nameserver: gateway }
    })
  }

  async adopt(id: string): Promise<Shell> {
    if (!this.#records.has(id)) throw new IsletError('sandbox_lost', `The shell ${id} is gone.`)
    return this.#shells.shell(id)
  }

  /** Root inside gets the socket; others inside may enter the directory, and nobody else on this machine. */
  async ownSocket(shell: Shell): Promise<void> {
    const owner = this.#ranges.uidBase(this.#record(shell).index!)
    const socket = this.#shells.socket(shell.id)
    const directory = this.#shells.directory(shell.id)
    await Promise.all([
      chown(directory, 0, owner),
      chown(shell.linkDir, owner, owner),
      chown(socket, owner, owner),
    ])
    await Promise.all([chmod(directory, 0o710), chmod(shell.linkDir, 0o711), chmod(socket, 0o600)])
  }

  async limit(shell: Shell, { memoryBytes, cpuMillis, pids }: Limits): Promise<void> {
    await this.#warden.request('CGROUP_LIMIT', { cgroup: shell.id, limits: { memoryBytes, cpuMillis, pids } })
  }

  async freeze(shell: Shell): Promise<void> {
    await this.#warden.request('CGROUP_FREEZE', { cgroup: shell.id, frozen: 1 })
  }

  async thaw(shell: Shell): Promise<void> {
    await this.#warden.request('CGROUP_FREEZE', { cgroup: shell.id, frozen: 0 })
  }

  async reclaim(shell: Shell): Promise<void> {
    await this.#warden.request('CGROUP_RECLAIM', { cgroup: shell.id })
  }

  async saveMemory(): Promise<void> {
    throw notSupported(this.capabilities.memoryCheckpoint)
  }

  async usage(shell: Shell): Promise<Usage> {
    return usageOf(await this.#warden.request('CGROUP_STAT', { cgroup: shell.id }))
  }

  async alive(shell: Shell): Promise<boolean> {
    const process = this.#records.get(shell.id)?.process
    return process !== undefined && (await isRunning(process))
  }

  /** Callers share one: a range that is given back twice could by then be another shell's. */
  destroy(shell: Shell): Promise<void> {
    let dying = this.#dying.get(shell.id)
    if (!dying) {
      dying = this.#destroy(shell).finally(() => this.#dying.delete(shell.id))
      this.#dying.set(shell.id, dying)
    }
    return dying
  }

  async close(options: { all?: boolean } = {}): Promise<void> {
    await Promise.allSettled(this.#busy.values())
    await this.#network.close(options)
    if (!options.all) return
    for (const id of this.#records.keys()) await this.destroy(this.#shells.shell(id))
    await this.#runtime.forgetAll()
    await removeCgroups(this.#instance.cgroup)
  }

  async #destroy(shell: Shell): Promise<void> {
    await this.#busy.get(shell.id)?.catch(() => {})
    const record = this.#records.get(shell.id)
    if (!record) return
    await removeCgroup(this.#warden, shell.id)
    // The namespace takes it along, but some time later.
    if (record.network) await this.#warden.request('VETH_DELETE', { veth: this.#veth(record) })
    await Promise.all([this.#runtime.forget(shell.id), this.#shells.remove(shell.id)])
    this.#records.delete(shell.id)
    this.#ranges.free(record.index!)
  }

  async #makeSkeleton(): Promise<void> {
    for (const name of SKELETON) await mkdir(join(this.#rootDir, name), { recursive: true })
    for (const path of ['', ...SKELETON]) await chmod(join(this.#rootDir, path), 0o755)
  }

  async #alone<T>(shell: Shell, work: (record: ShellRecord, uidBase: number) => Promise<T>): Promise<T> {
    const record = this.#record(shell)
    const done = work(record, this.#ranges.uidBase(record.index!))
    this.#busy.set(shell.id, done)
    try {
      return await done
    } finally {
      if (this.#busy.get(shell.id) === done) this.#busy.delete(shell.id)
    }
  }

  #record(shell: Shell): ShellRecord {
    const record = this.#records.get(shell.id)
    if (!record) throw new IsletError('sandbox_lost', `The shell ${shell.id} is gone.`)
    return record
  }

  /** At most 15 bytes, and of this slot alone. */
  #veth(record: ShellRecord): string {
    return `${this.#instance.bridge}v${record.index}`
  }
}

export function ociCapabilities(warden: Pick<Warden, 'quota'>): EngineCapabilities {
  const diskLimit: Capability = warden.quota || {
    missing: 'The data directory is not on btrfs, which can count and bound.',
  }
  return {
    engine: 'oci',
    isolation: 'namespace',
    lateRoot: true,
    wall: true,
    memoryLimit: true,
    cpuLimit: true,
    pidsLimit: true,
    diskLimit,
    network: true,
    freeze: true,
    memoryCheckpoint: { missing: 'runc cannot save the memory of a running sandbox.' },
    users: true,
  }
}
