// While a service's command runs: watches its port, checks its health, and moves it to ready or back.
import { setTimeout } from 'node:timers/promises'
import type { HealthCheckParsed } from '@islet/contract'
import type { ListeningPort } from '../../guest/guest.ts'
import { checkHealth } from './health.ts'
import type { KeeperParts } from './keeper.ts'
import { dialable, ownPort } from './ports.ts'
import type { ServiceKey } from './records.ts'

const INTERVAL_MS = 5000
const TIMEOUT_MS = 3000

export class Readiness implements Disposable {
  readonly #parts: KeeperParts
  readonly #key: ServiceKey
  readonly #check: HealthCheckParsed | undefined
  readonly #over = new AbortController()
  readonly #unwatch: () => void
  readonly #startedAt: number
  #checking = new AbortController()
  #own: ListeningPort | undefined
  #healthy: boolean
  #announced: boolean

  /** For the process that the record names. */
  constructor(parts: KeeperParts, key: ServiceKey, options: { startedAt: number }) {
    this.#parts = parts
    this.#key = key
    this.#startedAt = options.startedAt
    const { spec, state } = parts.records.get(key)
    this.#check = spec.healthCheck
    this.#healthy = !this.#check || state.healthy === true
    this.#announced = state.status === 'ready'
    const { pid, assignedPort } = state
    this.#unwatch = parts.ports.watch(key.sandboxId, (open) => {
      if (pid !== null) this.#onPorts(ownPort(open, pid, assignedPort)).catch((error) => this.#report(error))
    })
  }

  [Symbol.dispose](): void {
    this.#unwatch()
    this.#over.abort()
    this.#checking.abort()
  }

  async #onPorts(own: ListeningPort | undefined): Promise<void> {
    const before = this.#own
    this.#own = own
    const { state } = this.#parts.records.get(this.#key)
    const moved = (own?.port ?? null) !== state.port
    if (moved) this.#note(state.status, { port: own?.port ?? null, url: null })
    if (own?.port !== before?.port || own?.address !== before?.address) this.#checkAnew(own)
    await this.#settle()
  }

  /** A service whose port has changed is not ready until the new one is. */
  #note(status: string, patch: { port: number | null; url: null }): void {
    if (status === 'ready') this.#parts.records.move(this.#key, 'unready', patch)
    else this.#parts.records.note(this.#key, patch)
  }

  async #settle(): Promise<void> {
    const own = this.#own
    const { records, previewUrl, signals } = this.#parts
    const { sandboxId } = this.#key
    const { status } = records.get(this.#key).state
    if (!own || !this.#healthy) {
      if (status === 'ready') records.move(this.#key, 'unready')
      return
    }
    if (status !== 'running') return
    const url = await previewUrl(sandboxId, own.port).catch(() => null)
    const isStill = !this.#over.signal.aborted && this.#own?.port === own.port && this.#healthy
    if (!isStill || records.get(this.#key).state.status !== 'running') return
    records.move(this.#key, 'ready', { url })
    if (this.#announced) return
    this.#announced = true
    signals.emit(sandboxId, { signal: 'server-ready', port: own.port, url: url ?? '' })
  }

  #checkAnew(own: ListeningPort | undefined): void {
    this.#checking.abort()
    if (!own || !this.#check) return
    this.#checking = new AbortController()
    const { signal } = this.#checking
    this.#keepChecking(own, this.#check, signal).catch((error) => {
      if (!signal.aborted) this.#report(error)
    })
  }

  async #keepChecking(own: ListeningPort, check: HealthCheckParsed, signal: AbortSignal): Promise<void> {
    const { interval = INTERVAL_MS, delay = 0 } = check
    const first = this.#startedAt + delay - Date.now()
    if (first > 0) await setTimeout(Math.min(first, delay), undefined, { signal, ref: false })
    for (;;) {
      const { healthy, status } = await this.#ask(own, check, signal)
      this.#healthy = healthy
      const { state } = this.#parts.records.get(this.#key)
      if (state.healthy !== healthy || state.healthStatus !== status)
        this.#parts.records.note(this.#key, { healthy, healthStatus: status })
      await this.#settle()
      await setTimeout(interval, undefined, { signal, ref: false })
    }
  }

  async #ask({ port, address }: ListeningPort, check: HealthCheckParsed, signal: AbortSignal) {
    const host = dialable(address)
    if (!host) return { healthy: false, status: `it listens on ${address}, not on the loopback` }
    const { machine } = await this.#parts.sandboxes.running(this.#key.sandboxId)
    signal.throwIfAborted()
    const target = { host, port, path: check.path, timeoutMs: check.timeout ?? TIMEOUT_MS }
    return checkHealth(machine.guest, target, signal)
  }

  /** Afterwards its record may be gone, so errors are not reported. */
  #report(error: unknown): void {
    if (!this.#over.signal.aborted) this.#parts.log.error({ error, ...this.#key }, 'readiness check failed')
  }
}
