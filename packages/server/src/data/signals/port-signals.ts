// Signals for ports that open and close inside a sandbox.
import { IsletError, type SignalEvent } from '@islet/contract'
import type { ListeningPort } from '../../guest/guest.ts'
import type { Log } from '../../log.ts'

/** How long to wait for a guest that is not connected. */
const BEGIN_TIMEOUT_MS = 15_000

interface PortSignalsOptions {
  watch(onChange: (ports: ListeningPort[]) => void): () => void
  /** The preview URL of a port. */
  urlOf(port: number): Promise<string>
  emit(event: SignalEvent): void
  log: Log
}

export class PortSignals {
  /** Resolves after the first look: later changes are signalled. */
  readonly begun: Promise<void>
  readonly #options: PortSignalsOptions
  readonly #unwatch: () => void
  readonly #urls = new Map<number, string>()
  /** The ports that were signalled; undefined before the first look. */
  #told: Set<number> | undefined
  #now: Set<number> = new Set()
  #isTelling = false
  #isStopped = false

  constructor(options: PortSignalsOptions) {
    this.#options = options
    const begun = Promise.withResolvers<void>()
    const timer = setTimeout(
      () => begun.reject(new IsletError('timeout', 'The sandbox did not say which ports are open.')),
      BEGIN_TIMEOUT_MS,
    ).unref()
    this.begun = begun.promise.finally(() => clearTimeout(timer))
    this.begun.catch(() => {})
    this.#unwatch = options.watch((ports) => {
      begun.resolve()
      this.#now = new Set(ports.map(({ port }) => port))
      if (this.#told) void this.#tell()
      else this.#told = this.#now
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#unwatch()
  }

  /** Signals one change after the other until they match the current ports; a port that opened and closed meanwhile is skipped. */
  async #tell(): Promise<void> {
    if (this.#isTelling) return
    this.#isTelling = true
    for (let told: Set<number> | undefined; told !== this.#now; ) {
      told = this.#now
      const before = this.#told!
      for (const port of before.difference(told)) await this.#emit(port, 'close')
      for (const port of told.difference(before)) await this.#emit(port, 'open')
      this.#told = told
    }
    this.#isTelling = false
  }

  async #emit(port: number, type: 'open' | 'close'): Promise<void> {
    const url = await this.#urlOf(port)
    if (type === 'close') this.#urls.delete(port)
    else this.#urls.set(port, url)
    if (!this.#isStopped) this.#options.emit({ signal: 'port', port, type, url })
  }

  /** A port that closes has the URL of its `open` signal. */
  async #urlOf(port: number): Promise<string> {
    const known = this.#urls.get(port)
    if (known !== undefined) return known
    try {
      return await this.#options.urlOf(port)
    } catch (error) {
      this.#options.log.debug({ err: error, port }, 'a port has no preview URL')
      return `http://127.0.0.1:${port}`
    }
  }
}
