// The limits that this machine can give. A request for more is refused; a default, or a limit from a snapshot of a larger
// machine, is lowered.
import { type CreateSandboxParsed, formatCores, formatSize, IsletError } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import { machineLimits } from '../engine/capacity.ts'
import type { Storage } from '../storage/storage.ts'

type Resources = SandboxRecord['resources']

const OPTIONS = [
  ['memory', 'memoryBytes', formatSize],
  ['cpu', 'cpuMillis', formatCores],
  ['disk', 'diskBytes', formatSize],
  ['pids', 'pids', String],
] as const

export class Capacity {
  readonly #storage: Pick<Storage, 'sizeBytes'>
  readonly #ceilings: Partial<Resources>
  #has: Resources

  /** `ceilings`: the operator's limits. */
  constructor(storage: Pick<Storage, 'sizeBytes'>, ceilings: Partial<Resources> = {}) {
    this.#storage = storage
    this.#ceilings = ceilings
    this.#has = this.#look()
  }

  get has(): Resources {
    return this.#has
  }

  /** Throws `limit_too_high`. */
  assertFits(asked: CreateSandboxParsed['resources']): void {
    if (!asked || !this.#isTooMuch(asked)) return
    // The machine or its pool may have grown.
    this.#has = this.#look()
    for (const [option, key, format] of OPTIONS) {
      const wanted = asked[option]
      const available = this.#has[key]
      if (wanted === undefined || wanted <= available) continue
      throw new IsletError(
        'limit_too_high',
        `resources.${option} is ${format(wanted)}, but this server allows ${format(available)}.`,
        {
          hint: `Ask for at most ${format(available)}.`,
          details: { option: `resources.${option}`, asked: wanted, available },
        },
      )
    }
  }

  lower(resources: Resources): Resources {
    const lowered = { ...resources }
    for (const [, key] of OPTIONS) lowered[key] = Math.min(resources[key], this.#has[key])
    return lowered
  }

  #isTooMuch(asked: NonNullable<CreateSandboxParsed['resources']>): boolean {
    return OPTIONS.some(([option, key]) => (asked[option] ?? 0) > this.#has[key])
  }

  #look(): Resources {
    const found = { ...machineLimits(), diskBytes: this.#storage.sizeBytes() }
    for (const [, key] of OPTIONS) found[key] = Math.min(found[key], this.#ceilings[key] ?? found[key])
    return found
  }
}
