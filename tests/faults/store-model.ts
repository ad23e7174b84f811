// The steps of the writers of the store's fault test, and the content of the store after each step.
import assert from 'node:assert/strict'
import type { StoreOperation } from '@islet/contract'

/** Writers, each with keys of its own. */
export const CLIENTS = 3
/** Key → JSON. */
export type State = Record<string, string>

const SINGLES = 8
const BATCH = 10

/** The nth step of a client: one operation by itself, several as a batch. Doing it twice is the same as once. */
export function step(client: number, n: number): StoreOperation[] {
  const single = (index: number) => `${client}/single/${index % SINGLES}`
  const value = { n, text: 'x'.repeat((n * 37) % 2000) }
  const set = (key: string): StoreOperation => ({ op: 'set', key, value })
  switch (n % 5) {
    case 0:
      return [set(single(n))]
    case 1:
      return [
        ...Array.from({ length: BATCH }, (_, index) => set(`${client}/batch/${index}`)),
        { op: 'delete', key: single(n + 3) },
      ]
    case 2:
      return [{ op: 'delete', key: single(n >> 1) }]
    case 3:
      return [set(`${client}/overwritten`)]
    default:
      return [
        { op: 'delete', key: `${client}/batch/0` },
        ...Array.from({ length: BATCH - 1 }, (_, index) => set(`${client}/batch/${index + 1}`)),
      ]
  }
}

export class Model {
  /** Each client's next step: all before it were acknowledged. */
  readonly next: number[] = Array.from({ length: CLIENTS }, () => 0)
  readonly #states: State[] = Array.from({ length: CLIENTS }, () => ({}))

  acknowledge(client: number, n: number): void {
    assert.equal(n, this.next[client], 'steps are acknowledged in their order')
    this.#states[client] = applied(this.#states[client]!, step(client, n))
    this.next[client] = n + 1
  }

  /** Everything that was acknowledged to each client, and all or nothing of its next step. */
  check(found: State): void {
    for (const [client, acknowledged] of this.#states.entries()) {
      const own = Object.fromEntries(Object.entries(found).filter(([key]) => key.startsWith(`${client}/`)))
      const further = applied(acknowledged, step(client, this.next[client]!))
      assert.deepEqual(own, isSame(own, further) ? further : acknowledged)
    }
  }
}

function applied(state: State, operations: StoreOperation[]): State {
  const after = { ...state }
  for (const operation of operations) {
    if (operation.op === 'delete') delete after[operation.key]
    else after[operation.key] = JSON.stringify(operation.value)
  }
  return after
}

function isSame(one: State, other: State): boolean {
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key])
}
