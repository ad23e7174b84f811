// Forks: new sandboxes that begin as another one is now.
import type { CopySandboxParsed, ForkSandboxParsed, IsletError } from '@islet/contract'
import type { SavedRecord } from '../../db/saved-states.ts'
import type { CopyOptions, Creation } from '../creation.ts'
import { asStartError } from '../errors.ts'
import type { Fleet } from '../fleet.ts'
import type { SandboxView } from '../record.ts'
import { clonesLayers } from './roots.ts'
import { assertSavable, type SavedStates, savable } from './saved-states.ts'

interface ForksOptions {
  fleet: Fleet
  savedStates: SavedStates
  creation: Creation
  remove(id: string): Promise<unknown>
}

export interface ForkResult {
  frozenMs: number
  memory: boolean
  forks: ({ ok: true; sandbox: SandboxView } | { ok: false; error: IsletError })[]
}

export async function fork(
  { fleet, savedStates, creation, remove }: ForksOptions,
  sandboxId: string,
  { count = 1, ...input }: ForkSandboxParsed,
  options: { signal?: AbortSignal } = {},
): Promise<ForkResult> {
  assertSavable(fleet.record(sandboxId))
  fleet.capacity.assertFits(input.resources)
  fleet.assertNameFree(input.name)
  // If no cell waits, one is started while the source is saved. Starting more would slow down the save, which freezes the source.
  await using cell = fleet.warm.claim()
  let takesLayer: CopyOptions['takesLayer']
  const saved = await fleet.inTurn(sandboxId, async () => {
    const record = await savable(fleet, sandboxId)
    options.signal?.throwIfAborted()
    // A single fork takes over the clone instead of waiting for a clone of it.
    if (count === 1 && clonesLayers(fleet.storage))
      takesLayer = { limitBytes: input.resources?.disk ?? record.resources.diskBytes }
    return savedStates.save(record, { takenOver: takesLayer })
  })
  await using kept = await savedStates.use(saved)
  if (kept.saved.state.root.layer !== saved.state.root.layer) takesLayer = undefined
  const one = (_: unknown, index: number) =>
    forkOne(creation, kept.saved, input, index === 0 ? { ...options, cell, takesLayer } : options)
  const forks = await Promise.all(Array.from({ length: count }, one))
  const made = forks.flatMap((result) => (result.ok ? result.sandbox.id : []))
  if (options.signal?.aborted) {
    await Promise.all(made.map(remove))
    throw options.signal.reason
  }
  const { frozenMs, memory } = saved
  if (fleet.table.get(sandboxId))
    fleet.events.add(sandboxId, 'forked', { forks: made, failed: count - made.length, frozenMs, memory })
  return { frozenMs, memory, forks }
}

async function forkOne(
  creation: Creation,
  saved: SavedRecord,
  input: CopySandboxParsed,
  options: CopyOptions,
): Promise<ForkResult['forks'][number]> {
  const origin = { kind: 'fork', id: saved.sandboxId } as const
  try {
    options.signal?.throwIfAborted()
    return { ok: true, sandbox: await creation.copy(saved, input, { origin }, options) }
  } catch (error) {
    return { ok: false, error: asStartError(error) }
  }
}
