// Calls that use a sandbox: it is woken for them, and not idle until they are over.
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Use } from '../control/suspension.ts'
import type { Caller } from './caller.ts'

/** The header of an answer whose sandbox was woken for it. */
export const AUTO_RESUMED = 'Islet-Auto-Resumed'

/** What a program inside asks for is no use by anybody: else one in the background could keep its sandbox awake. */
export async function useOf(
  call: { params: Record<string, string>; caller: Caller | undefined },
  sandboxes: Pick<Sandboxes, 'use'>,
): Promise<Use | undefined> {
  const { caller } = call
  if (caller?.kind === 'inside') return undefined
  const id = call.params.id ?? (caller?.kind === 'sandbox' ? caller.sandboxId : undefined)
  return id === undefined ? undefined : sandboxes.use(id)
}
