// The checks that are skipped for an engine: only its declared gaps, each with its reason.
import type { EngineCapabilities, Isolation } from '../engine.ts'

type CapabilityName = Exclude<keyof EngineCapabilities, 'engine' | 'isolation'>

export class Gaps {
  readonly #capabilities: EngineCapabilities

  constructor(capabilities: EngineCapabilities) {
    this.#capabilities = capabilities
  }

  /** Options for a test that needs a capability. */
  unless(name: CapabilityName): { skip?: string } {
    const capability = this.#capabilities[name]
    return capability === true ? {} : { skip: capability.missing }
  }

  get isolation(): Isolation {
    return this.#capabilities.isolation
  }

  table(): string {
    const { engine, isolation, ...rest } = this.#capabilities
    const rows = Object.entries(rest).map(([name, capability]) => {
      return `  ${name.padEnd(18)} ${capability === true ? 'yes' : `no: ${capability.missing}`}`
    })
    return [`engine ${engine}, isolation ${isolation}`, ...rows].join('\n')
  }
}
