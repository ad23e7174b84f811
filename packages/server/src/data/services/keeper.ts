// Keeps one service running, starting from its record: each status has one step, and a step ends with a move to the next status.
// All state is in the record, so the next server continues where this one was.
import { posix } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { env as envSchema, IsletError, type ProcessInfo } from '@islet/contract'
import type { ServiceRecord } from '../../db/services.ts'
import { untilAborted } from '../../lib/until-aborted.ts'
import type { ServiceStatus } from './moves.ts'
import { afterEnd, whyEnded } from './policy.ts'
import { Readiness } from './readiness.ts'
import type { ServiceKey, ServiceRecords } from './records.ts'
import type { ServicesOptions } from './services.ts'

export interface KeeperParts extends ServicesOptions {
  records: ServiceRecords
  /** A free port for this service; null when it wants none. */
  assignPort: (key: ServiceKey) => Promise<number | null>
}

export class Keeper {
  readonly done: Promise<void>
  readonly #parts: KeeperParts
  readonly #key: ServiceKey
  readonly #released = new AbortController()
  #isResuming: boolean

  /** `resumes`: the record comes from another server, which may have started a process that it did not record. */
  constructor(parts: KeeperParts, key: ServiceKey, options: { resumes: boolean }) {
    this.#parts = parts
    this.#key = key
    this.#isResuming = options.resumes
    const { keepAwake } = this.#record.spec
    const why = { kind: 'service', id: key.name } as const
    const leave = keepAwake ? parts.sandboxes.keepAwake(key.sandboxId, why) : undefined
    this.done = this.#keep()
      .catch((error) => parts.log.error({ error, ...key }, 'service not kept'))
      .finally(leave)
  }

  /** Stops keeping it and leaves its processes running. All of them are in the record then. */
  release(): Promise<void> {
    this.#released.abort()
    return this.done
  }

  async #keep(): Promise<void> {
    const steps: Partial<Record<ServiceStatus, () => Promise<void>>> = {
      installing: () => this.#install(),
      starting: () => this.#start(),
      running: () => this.#follow(),
      ready: () => this.#follow(),
    }
    try {
      // Patches are applied before a service starts.
      await untilAborted(this.#parts.sandboxes.settled(this.#key.sandboxId), this.#released.signal)
      for (;;) {
        if (this.#isOver) return
        const step = steps[this.#record.state.status]
        if (!step) return
        await step()
        this.#isResuming = false
      }
    } catch (error) {
      if (this.#isOver) return
      this.#parts.log.warn({ error, ...this.#key }, 'service failed')
      this.#parts.records.move(this.#key, 'fail', { reason: (error as Error).message })
    }
  }

  get #record(): ServiceRecord {
    return this.#parts.records.get(this.#key)
  }

  /** Released, or its sandbox does not run: the caller that did that updates the record. */
  get #isOver(): boolean {
    if (this.#released.signal.aborted) return true
    try {
      return this.#parts.sandboxes.record(this.#key.sandboxId).status !== 'running'
    } catch {
      return true
    }
  }

  async #install(): Promise<void> {
    const { records } = this.#parts
    const { state, spec } = this.#record
    let id = state.installId ?? (await this.#begun())?.id
    if (id === undefined) {
      const env = await this.#environment()
      this.#released.signal.throwIfAborted()
      id = (await this.#spawn(spec.install!, env)).id
    }
    if (id !== state.installId) records.note(this.#key, { installId: id })
    const { result } = await this.#end(id)
    if (this.#isOver) return
    const why = whyEnded('The install command', result)
    if (why === undefined) records.move(this.#key, 'start')
    else records.move(this.#key, 'fail', { reason: why })
  }

  async #start(): Promise<void> {
    const { records } = this.#parts
    await this.#pause()
    let process = await this.#begun()
    if (!process) {
      try {
        process = await this.#launch()
      } catch (error) {
        if (this.#isOver || !(error instanceof IsletError) || !error.retryable) throw error
        return this.#decide(`It could not be started: ${error.message}`)
      }
    }
    records.move(this.#key, 'run', { processId: process.id, pid: process.pid })
  }

  async #launch(): Promise<ProcessInfo> {
    const port = await this.#parts.assignPort(this.#key)
    const env = await this.#environment(port)
    this.#released.signal.throwIfAborted()
    return this.#spawn(this.#record.spec.start, env)
  }

  async #follow(): Promise<void> {
    const id = this.#record.state.processId!
    const { startedAt } = await this.#parts.processes.get(this.#key.sandboxId, id)
    using _readiness = new Readiness(this.#parts, this.#key, { startedAt: Date.parse(startedAt) })
    const { result } = await this.#end(id)
    if (!this.#isOver) this.#decide(whyEnded('It', result))
  }

  #decide(why: string | undefined): void {
    const { records } = this.#parts
    const { spec, state } = this.#record
    const verdict = afterEnd(spec, state, why)
    if (verdict.verb === 'stop') records.move(this.#key, 'stop')
    else if (verdict.verb === 'fail') records.move(this.#key, 'fail', { reason: verdict.reason })
    else {
      const restartCount = state.restartCount + 1
      const notBefore = Date.now() + verdict.delayMs
      records.move(this.#key, 'restart', { restartCount, notBefore }, why ?? 'It ended with exit code 0.')
    }
  }

  async #pause(): Promise<void> {
    const { notBefore, attemptAt } = this.#record.state
    // Never longer than intended, also when the clock was set back.
    const left = Math.min(notBefore - Date.now(), notBefore - attemptAt)
    if (left > 0) await setTimeout(left, undefined, { signal: this.#released.signal, ref: false })
  }

  /** The env file, the environment of the service, and PORT. They override the sandbox's environment. */
  async #environment(port: number | null = null): Promise<Record<string, string>> {
    const { environment } = this.#record.spec
    const all = { ...(await this.#envFile()), ...environment, ...(port !== null && { PORT: String(port) }) }
    const { error } = envSchema.safeParse(all)
    if (error)
      throw new IsletError('bad_request', `The environment does not fit: ${error.issues[0]?.message}.`)
    return all
  }

  /** The install step may create the file: it is required only for the command. */
  async #envFile(): Promise<Record<string, string>> {
    const { spec, state } = this.#record
    if (!spec.envFile) return {}
    const path = posix.resolve(state.path, spec.envFile)
    const { signal } = this.#released
    try {
      return await this.#parts.envFiles.read(this.#key.sandboxId, path, { signal })
    } catch (error) {
      if (!(error instanceof IsletError)) throw error
      if (error.code === 'file_not_found' && state.status === 'installing') return {}
      throw new IsletError(error.code, `The env file ${path} could not be read: ${error.message}`)
    }
  }

  #spawn(command: string, env: Record<string, string>): Promise<ProcessInfo> {
    const { spec, state } = this.#record
    const { sandboxId, name: service } = this.#key
    const input = {
      command,
      env,
      cwd: state.path,
      user: spec.user,
      keepAwake: spec.keepAwake ?? false,
      keepOutput: spec.keepOutput,
    }
    return this.#parts.processes.startOwned(sandboxId, input, { service })
  }

  /** A process that this attempt started but did not record. */
  async #begun(): Promise<ProcessInfo | undefined> {
    if (!this.#isResuming) return undefined
    const { sandboxId, name } = this.#key
    const { attemptAt } = this.#record.state
    const found = Iterator.from(this.#parts.processes.list(sandboxId, { limit: 1000 })).find(
      // A running one belongs to this attempt even if the clock was set back: earlier ones were ended.
      ({ service, status, startedAt }) =>
        service === name && (status === 'running' || Date.parse(startedAt) >= attemptAt),
    )
    if (!found) return undefined
    // A lost one never ran.
    const process = await this.#parts.processes.found(sandboxId, found.id)
    return process.status === 'lost' ? undefined : process
  }

  async #end(processId: string): Promise<ProcessInfo> {
    const { sandboxId } = this.#key
    const process = await this.#parts.processes.waitEnd(sandboxId, processId, this.#released.signal)
    if (process.status === 'running') throw new Error('The process could not be followed.')
    return process
  }
}
