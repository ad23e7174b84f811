// A call that uses a sandbox wakes it and keeps it from being idle until the call ends.
import type { AwakeReason } from '@islet/contract'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Use } from '../../control/suspension.ts'
import type { Caller } from './caller.ts'

interface UsingCall {
  params: Record<string, string>
  caller: Caller | undefined
}

/** Calls from inside the sandbox do not count as activity: a background program could keep its sandbox awake. */
export async function useOf(
  call: UsingCall,
  sandboxes: Pick<Sandboxes, 'use'>,
  why?: AwakeReason,
): Promise<Use | undefined> {
  const { caller } = call
  if (caller?.kind === 'inside') return undefined
  const id = call.params.id ?? (caller?.kind === 'sandbox' ? caller.sandboxId : undefined)
  return id === undefined ? undefined : sandboxes.use(id, why)
}

/** The sandboxes that one call uses. */
export class Uses implements Disposable {
  autoResumed = false
  readonly #sandboxes: Sandboxes
  readonly #onResumed: () => void
  readonly #uses: (() => void)[] = []

  /** `onResumed`: a sandbox was woken for the call. */
  constructor(sandboxes: Sandboxes, onResumed: () => void) {
    this.#sandboxes = sandboxes
    this.#onResumed = onResumed
  }

  async ofCall(call: UsingCall): Promise<void> {
    this.#add(await useOf(call, this.#sandboxes))
  }

  async add(sandboxId: string): Promise<void> {
    this.#add(await this.#sandboxes.use(sandboxId))
  }

  hold(sandboxId: string): void {
    if (this.#sandboxes.record(sandboxId).status === 'running')
      this.#uses.push(this.#sandboxes.keepAwake(sandboxId))
  }

  [Symbol.dispose](): void {
    for (const leave of this.#uses.splice(0)) leave()
  }

  #add(use: Use | undefined): void {
    if (!use) return
    this.#uses.push(() => use[Symbol.dispose]())
    if (!use.autoResumed) return
    this.autoResumed = true
    this.#onResumed()
  }
}
