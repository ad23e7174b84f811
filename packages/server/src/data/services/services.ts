// Long-running programs that are kept running. A request is recorded first (`goal`), then carried out: if the server is killed in
// between, the next one carries it out.
import { posix } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import {
  IsletError,
  LIMITS,
  type ServiceInfo,
  type ServiceLogs,
  type StartServiceParsed,
} from '@islet/contract'
import type { Events } from '../../control/events.ts'
import type { Beginning, RunningSandbox, SandboxObserver } from '../../control/fleet.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import type { ServiceState } from '../../db/services.ts'
import { hasCode, ignoring } from '../../lib/has-code.ts'
import { Locks } from '../../lib/locks.ts'
import type { Log } from '../../log.ts'
import type { EnvFiles } from '../env-files/env-files.ts'
import type { Files } from '../files/files.ts'
import type { Told } from '../output/kept-bytes.ts'
import type { Ports } from '../ports.ts'
import type { Processes } from '../processes/processes.ts'
import type { Signals } from '../signals/signals.ts'
import { Keeper, type KeeperParts } from './keeper.ts'
import { begin, hasEnded, isAtLeast, newState, type ServiceStatus } from './moves.ts'
import { outcomeOf, type ServiceOutcome } from './outcome.ts'
import { PortGiver } from './ports.ts'
import { type ServiceKey, ServiceRecords, toServiceInfo } from './records.ts'
import { endProcess, killStranger } from './stop.ts'

const STOP_TIMEOUT_MS = 10_000
/** A launch takes milliseconds; after this time the answer is `starting`. */
const LAUNCH_WAIT_MS = 5000

/** Before a sandbox is suspended, pending starts and health checks have this long to finish. */
const RELEASE_WAIT_MS = 2000
const STARTED_OVER = 'The sandbox was hibernated, lost while it was suspended, or restored from a checkpoint.'

export interface ServicesOptions {
  db: Db
  sandboxes: Sandboxes
  events: Events
  processes: Processes
  files: Files
  envFiles: EnvFiles
  ports: Ports
  signals: Signals
  log: Log
  /** The preview URL of a port; creates the preview if there is none. */
  previewUrl: (sandboxId: string, port: number) => Promise<string>
}

export class Services implements SandboxObserver {
  readonly #options: ServicesOptions
  readonly #records: ServiceRecords
  readonly #ports: PortGiver
  readonly #parts: KeeperParts
  readonly #keepers = new Map<string, Keeper>()
  /** One operation at a time per service. */
  readonly #locks = new Locks()
  /** Suspended sandboxes: their services are not kept running until they resume. */
  readonly #still = new Set<string>()

  constructor(options: ServicesOptions) {
    this.#options = options
    this.#records = new ServiceRecords(options)
    this.#ports = new PortGiver(this.#records, options.sandboxes)
    this.#parts = { ...options, records: this.#records, assignPort: (key) => this.#ports.assign(key) }
    options.sandboxes.observe(this)
  }

  /** Returns before anything runs. An ended service of the same name is replaced. */
  async start(sandboxId: string, spec: StartServiceParsed): Promise<ServiceInfo> {
    this.#options.processes.assertKeeps(spec)
    const { record: sandbox } = await this.#options.sandboxes.running(sandboxId)
    const key = { sandboxId, name: spec.name }
    const path = posix.resolve(sandbox.workdir, spec.path ?? '')
    return this.#alone(key, async () => {
      await this.#assertDirectory(sandboxId, path)
      const open = await this.#ports.open(key, spec)
      // No await from here on: the checks still hold when the record is written.
      this.#assertRoom(key, spec)
      const assignedPort = this.#ports.choose(key, spec, open)
      const fresh = newState(path, { installed: spec.install === undefined })
      const now = Date.now()
      const state = begin(fresh, { assignedPort })
      const record = this.#records.insert({ ...key, spec, state, createdAt: now, updatedAt: now })
      this.#keep(key)
      return toServiceInfo(record)
    })
  }

  list(sandboxId: string): ServiceInfo[] {
    this.#options.sandboxes.record(sandboxId)
    return this.#records.list(sandboxId).map(toServiceInfo)
  }

  /** With `waitMs`: returns once it has the status or has ended, or after that time. */
  async get(
    sandboxId: string,
    name: string,
    options: { status?: ServiceStatus; waitMs?: number; signal?: AbortSignal } = {},
  ): Promise<ServiceInfo> {
    this.#options.sandboxes.record(sandboxId)
    const key = { sandboxId, name }
    const { status = 'ready', waitMs, signal } = options
    if (waitMs === undefined) return toServiceInfo(this.#records.get(key))
    const isSo = ({ state }: { state: ServiceState }) => hasEnded(state) || isAtLeast(state.status, status)
    return toServiceInfo(await this.#records.wait(key, isSo, { waitMs, signal }))
  }

  /** Returns once it has stopped. */
  stop(sandboxId: string, name: string): Promise<ServiceInfo> {
    return this.#ask({ sandboxId, name }, 'down')
  }

  /** Returns once its command runs again, or with its status after a while. */
  async restart(sandboxId: string, name: string): Promise<ServiceInfo> {
    const key = { sandboxId, name }
    await this.#ask(key, 'again')
    const isSo = ({ state }: { state: ServiceState }) => state.status !== 'starting'
    return toServiceInfo(await this.#records.wait(key, isSo, { waitMs: LAUNCH_WAIT_MS }))
  }

  async delete(sandboxId: string, name: string): Promise<void> {
    await this.#ask({ sandboxId, name }, 'gone')
  }

  async logs(sandboxId: string, name: string, options: { install: boolean }): Promise<Told<ServiceLogs>> {
    this.#options.sandboxes.record(sandboxId)
    const { state } = this.#records.get({ sandboxId, name })
    const processId = options.install ? state.installId : state.processId
    const nothing = { processId, stdout: '', stderr: '', truncated: false, droppedBytes: 0 }
    if (!processId) return nothing
    try {
      const { outputBytes: _, ...output } = await this.#options.processes.output(sandboxId, processId)
      return { processId, ...output }
    } catch (error) {
      // Its record was removed, because many processes ran since then.
      if (hasCode(error, 'process_not_found')) return nothing
      throw error
    }
  }

  began({ record }: RunningSandbox, how: Beginning): void {
    this.#still.delete(record.id)
    if (how === 'created') return
    for (const { sandboxId, name } of this.#records.list(record.id)) {
      const key = { sandboxId, name }
      this.#alone(key, () => this.#goOn(key, how)).catch((error) =>
        this.#options.log.error({ error, ...key }, 'service not recovered'),
      )
    }
  }

  /** With `kept`, services go on after the resume. Otherwise nothing runs any more, but `goal` stays. */
  async suspended(sandboxId: string, { kept }: { kept: boolean }): Promise<void> {
    this.#still.add(sandboxId)
    const keys = this.#records.list(sandboxId).map(({ name }) => ({ sandboxId, name }))
    const released = Promise.all(keys.map((key) => this.#keepers.get(keyText(key))?.release()))
    await Promise.race([released, setTimeout(RELEASE_WAIT_MS, undefined, { ref: false })])
    if (kept) return
    for (const key of keys) {
      const state = this.#records.find(key)?.state
      if (state && !hasEnded(state)) this.#records.move(key, 'stop', { reason: STARTED_OVER })
    }
  }

  /** The outcome of each service after a start of its sandbox, once it is known or after a while. */
  async outcomes(sandboxId: string): Promise<ServiceOutcome[]> {
    const names = this.#records.list(sandboxId).map(({ name }) => name)
    const outcomes = names.map((name) => {
      const key = { sandboxId, name }
      // Wait until the start has changed the record.
      return outcomeOf(this.#records, key, { begun: this.#alone(key, async () => {}) })
    })
    return (await Promise.all(outcomes)).filter((outcome) => outcome !== undefined)
  }

  async gone(sandboxId: string, options: { removed: boolean }): Promise<void> {
    this.#still.delete(sandboxId)
    for (const { name } of this.#records.list(sandboxId)) {
      const key = { sandboxId, name }
      await this.#keepers.get(keyText(key))?.release()
      if (options.removed) this.#records.remove(key)
      else if (!hasEnded(this.#records.get(key).state))
        this.#records.move(key, 'fail', { reason: 'The sandbox ended.' })
    }
  }

  /** Before shutdown: calls that wait for a status are answered with the current one. */
  leave(): void {
    this.#records.leave()
  }

  /** Services keep running; the next server takes them over. */
  close(): void {
    this.#records.close()
    for (const keeper of this.#keepers.values()) void keeper.release()
  }

  async #ask(key: ServiceKey, goal: ServiceState['goal']): Promise<ServiceInfo> {
    await this.#options.sandboxes.running(key.sandboxId)
    return this.#alone(key, async () => {
      this.#records.note(key, { goal })
      return this.#carryOut(key)
    })
  }

  /** Moves the service from its current state to its goal. */
  async #carryOut(key: ServiceKey): Promise<ServiceInfo> {
    const record = this.#records.get(key)
    const { goal, status } = record.state
    if (goal === 'down' && status === 'stopped') return toServiceInfo(record)
    if (goal === 'up') {
      if (!hasEnded(record.state)) this.#keep(key, { resumes: true })
      return toServiceInfo(record)
    }
    try {
      await this.#halt(key)
    } catch (error) {
      // It could not be stopped, so it goes on.
      this.#records.note(key, { goal: 'up' })
      this.#keep(key, { resumes: true })
      throw error
    }
    if (goal === 'again') return this.#beginAgain(key, 'A restart was requested.')
    const stopped = toServiceInfo(this.#records.move(key, 'stop'))
    if (goal === 'gone') this.#records.remove(key)
    return stopped
  }

  async #goOn(key: ServiceKey, how: Beginning): Promise<void> {
    const { spec, state } = this.#records.get(key)
    const isWanted = state.goal === 'up' || state.goal === 'again'
    const isCopied = await this.#endLeftover(key, how)
    if ((how !== 'restarted' && !isCopied) || !isWanted) await this.#carryOut(key)
    else if (spec.autostart ?? true) this.#beginAgain(key)
    else if (!hasEnded(state)) this.#records.move(key, 'stop')
  }

  /** For a record from a saved state: a process that came with the memory holds the port of the one to be started. */
  async #endLeftover(key: ServiceKey, how: Beginning): Promise<boolean> {
    const { leftover, status, processId } = this.#records.get(key).state
    if (how === 'adopted' && leftover) {
      const { machine } = await this.#options.sandboxes.running(key.sandboxId)
      await killStranger(machine.guest, leftover)
    }
    if (leftover) this.#records.note(key, { leftover: null })
    return Boolean(leftover) || (isAtLeast(status, 'running') && processId === null)
  }

  #beginAgain(key: ServiceKey, why?: string): ServiceInfo {
    const record = this.#records.replace(key, begin(this.#records.get(key).state), why)
    this.#keep(key)
    return toServiceInfo(record)
  }

  #keep(key: ServiceKey, options = { resumes: false }): void {
    if (this.#still.has(key.sandboxId)) return
    const name = keyText(key)
    const keeper = new Keeper(this.#parts, key, options)
    this.#keepers.set(name, keeper)
    void keeper.done.then(() => {
      if (this.#keepers.get(name) === keeper) this.#keepers.delete(name)
    })
  }

  /** Ends all its processes. */
  async #halt(key: ServiceKey): Promise<void> {
    await this.#keepers.get(keyText(key))?.release()
    const { sandboxId, name } = key
    const { spec, state } = this.#records.get(key)
    if (hasEnded(state)) return
    const timeoutMs = spec.stopTimeout ?? STOP_TIMEOUT_MS
    // Includes a process that was not recorded because of a crash.
    const all = this.#options.processes.list(sandboxId, { status: 'running', limit: 1000 })
    const running = [...all].filter((process) => process.service === name)
    await Promise.all(
      running.map(({ id }) => endProcess(this.#options.processes, sandboxId, id, { timeoutMs })),
    )
  }

  async #assertDirectory(sandboxId: string, path: string): Promise<void> {
    const missing = ignoring('file_not_found', 'not_a_directory')
    const entry = await this.#options.files.stat(sandboxId, path, { follow: true }).catch(missing)
    if (entry?.type !== 'directory') throw new IsletError('cwd_not_found', `There is no directory ${path}.`)
  }

  #assertRoom(key: ServiceKey, spec: object): void {
    const { sandboxId, name } = key
    const { status } = this.#options.sandboxes.record(sandboxId)
    if (status !== 'running') throw new IsletError('sandbox_lost', `Sandbox ${sandboxId} is ${status}.`)
    const all = this.#records.list(sandboxId)
    const same = all.find((other) => other.name === name)
    if (same && !hasEnded(same.state)) {
      throw new IsletError('conflict', `Service ${name} is ${same.state.status}.`, {
        hint: 'Stop it first, or restart it as it is.',
      })
    }
    if (!same && all.length >= LIMITS.services)
      throw new IsletError('limit_exceeded', `A sandbox has at most ${LIMITS.services} services.`, {
        hint: 'Delete one that is not needed.',
      })
    const others = all.filter((other) => other !== same).map((other) => other.spec)
    if (bytesOfSpecs([...others, spec]) > LIMITS.servicesBytes)
      throw new IsletError(
        'limit_exceeded',
        `The services of a sandbox take at most ${LIMITS.servicesBytes} bytes to describe.`,
        { hint: 'Put long scripts into files.', details: { limitBytes: LIMITS.servicesBytes } },
      )
  }

  #alone<T>(key: ServiceKey, work: () => Promise<T>): Promise<T> {
    return this.#locks.run([keyText(key)], work)
  }
}

/** Their size as they are stored. */
function bytesOfSpecs(specs: readonly object[]): number {
  return specs.reduce((bytes, spec) => bytes + Buffer.byteLength(JSON.stringify(spec)), 0)
}

function keyText({ sandboxId, name }: ServiceKey): string {
  return `${sandboxId}/${name}`
}
