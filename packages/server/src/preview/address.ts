// The URL of each preview, and which preview a request on the main port is for.
import { idPattern } from '@islet/contract'
import { hostName, isLoopback } from '../config/loopback.ts'
import type { Config } from '../config.ts'
import type { PreviewRecord } from '../db/previews.ts'

/** `3000-sbx-…`, the label before the configured domain. */
const LABEL = new RegExp(`^([1-9]\\d{0,4})-(${idPattern('sandbox').source.slice(1, -1)})$`)
/** For a server that listens on all addresses: an address that works on this machine. */
const EVERYWHERE: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

export type AddressConfig = Pick<Config, 'host' | 'previewDomain' | 'tlsCert'>

export class Addresses {
  readonly #config: AddressConfig
  /** The API's port, which preview domains lead to. */
  mainPort = 0

  constructor(config: AddressConfig) {
    this.#config = config
  }

  /** Whether each preview has a port of its own. */
  get byPort(): boolean {
    return this.#config.previewDomain === undefined
  }

  /** The scheme that browsers use: TLS ends here, or at a proxy in front of this server. */
  get scheme(): 'http' | 'https' {
    return this.#config.previewDomain?.scheme ?? (this.#config.tlsCert === undefined ? 'http' : 'https')
  }

  /** `via`: the Host name that the caller used; needed if the server listens on all addresses. */
  urlOf(record: PreviewRecord, via?: string): string {
    const origin = this.#config.previewDomain
    if (origin) {
      const name = record.domain ?? `${record.port}-${record.sandboxId}.${origin.name}`
      return `${origin.scheme}://${name}${origin.port === undefined ? '' : `:${origin.port}`}`
    }
    if (record.domain) return `${this.scheme}://${record.domain}:${this.mainPort}`
    const { host } = this.#config
    const name = host in EVERYWHERE ? (via ?? EVERYWHERE[host]!) : host
    return `${this.scheme}://${name.includes(':') ? `[${name}]` : name}:${record.listenPort}`
  }

  /** The preview of a name below the configured domain; `unknown` if the name has another form. */
  match(name: string): { sandboxId: string; port: number } | 'unknown' | undefined {
    const origin = this.#config.previewDomain
    if (!origin || !name.endsWith(`.${origin.name}`)) return undefined
    const [, port, sandboxId] = LABEL.exec(name.slice(0, -origin.name.length - 1)) ?? []
    return sandboxId === undefined ? 'unknown' : { sandboxId, port: Number(port) }
  }

  /** Whether a preview may have this domain: not an IP address, and not a name that the server uses itself. */
  isFree(domain: string): boolean {
    const origin = this.#config.previewDomain
    const isOurs = origin !== undefined && (domain === origin.name || domain.endsWith(`.${origin.name}`))
    return !isOurs && domain !== this.#config.host.toLowerCase() && !/(^|\.)\d+$/.test(domain)
  }

  /**
   * Whether a preview's own port accepts that Host. Against DNS rebinding: a page elsewhere can point its name at a loopback address,
   * but cannot choose the Host header.
   */
  answersTo(host: string | undefined, record: PreviewRecord): boolean {
    const { host: boundTo } = this.#config
    if (host === undefined || !isLoopback(boundTo)) return true
    const name = hostName(host)
    return name === boundTo || name === record.domain || isLoopback(name)
  }
}
