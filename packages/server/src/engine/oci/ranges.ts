// Which of the instance's uid ranges are taken. A range also determines the cell's address, so both are unique while it
// lives. The longest unused range is given out first, so that a new cell does not inherit network state (ARP, conntrack) of
// the previous one.
import { IsletError } from '@islet/contract'
import { type Instance, UIDS_PER_CELL } from '../../instance.ts'

// .0 is the network, .1 the gateway.
const FIRST_HOST = 2

export class Ranges {
  readonly #instance: Instance
  readonly #taken = new Set<number>()
  #next = 0

  constructor(instance: Instance) {
    this.#instance = instance
  }

  get left(): number {
    return this.#instance.uidRanges - this.#taken.size
  }

  take(): number {
    for (let i = 0; i < this.#instance.uidRanges; i++) {
      const index = (this.#next + i) % this.#instance.uidRanges
      if (this.#taken.has(index)) continue
      this.#taken.add(index)
      this.#next = index + 1
      return index
    }
    throw new IsletError(
      'too_many_requests',
      `There are ${this.#taken.size} sandboxes, the most that one server can have.`,
    )
  }

  /** Marks the range of a cell that an earlier server made. */
  hold(index: number): void {
    this.#taken.add(index)
  }

  free(index: number): void {
    this.#taken.delete(index)
  }

  uidBase(index: number): number {
    return this.#instance.uidStart + index * UIDS_PER_CELL
  }

  address(index: number): string {
    const host = index + FIRST_HOST
    return this.#instance.subnet.replace(/0\.0$/, `${host >> 8}.${host & 255}`)
  }
}
