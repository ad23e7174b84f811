// A sandbox taken back to a saved state, under the same id.
//
//   hold and make a layer over the saved one, name another cell  →  end what runs  →  one transaction: root, env, store, services  →  start
//
// Killed before the transaction it is restarted as it was; killed after it, as it is to be. If it cannot be started it is left
// hibernated, with its new root, and the next wake tries again.
import { newId, type SandboxEvent } from '@islet/contract'
import type { SandboxRecord } from '../../db/sandboxes.ts'
import type { SavedRecord } from '../../db/saved-states.ts'
import { WatcherTable } from '../../db/watchers.ts'
import { asStartError } from '../errors.ts'
import type { Fleet } from '../fleet.ts'
import { assertMove } from '../lifecycle.ts'
import { startMachine } from '../machine.ts'
import type { CellClaim } from '../warm/cells.ts'
import { makeLayer, movedPath, rootOver } from './roots.ts'
import type { SavedStates } from './saved-states.ts'

interface RestoreOptions {
  sandboxId: string
  saved: SavedRecord
  /** Of the event. */
  data: SandboxEvent['data']
}

interface Restored {
  record: SandboxRecord
  /** The observers have been told; wait for it when the turn is over, for it may take long. */
  begun: Promise<void>
}

/** Call it in the turn of the sandbox. */
export async function restore(
  fleet: Fleet,
  savedStates: SavedStates,
  options: RestoreOptions,
): Promise<Restored> {
  const { sandboxId, saved } = options
  const before = fleet.record(sandboxId)
  assertMove(before, 'restore')
  // If none waits, it is started while the layer is made and what runs is ended.
  await using claim = fleet.warm.claim()
  const layer = newId('layer')
  const root = rootOver(saved.state.root, layer, fleet.storage)
  fleet.layers.hold(sandboxId, root)
  try {
    const limitBytes = before.resources.diskBytes
    await makeLayer(fleet.storage, { layer, over: saved.state.root, limitBytes })
    exchangeCell(fleet, sandboxId, claim)
  } catch (error) {
    await fleet.dropLayers(fleet.layers.holdOnly(sandboxId, before.root))
    throw asStartError(error)
  }
  fleet.unsteady.add(sandboxId)
  try {
    const restored = await exchange(fleet, savedStates, before, { ...options, root, claim })
    fleet.dropLater(restored.unheld)
    if (before.memory !== null) await savedStates.memory.remove(before.memory)
    return await start(fleet, restored.record, claim, savedStates.memoryOf(saved))
  } finally {
    fleet.unsteady.delete(sandboxId)
  }
}

/** If it cannot be written down (the disk is full) it runs again as it was, which needs nothing to be written. */
async function exchange(
  fleet: Fleet,
  savedStates: SavedStates,
  before: SandboxRecord,
  options: RestoreOptions & { root: SandboxRecord['root']; claim: CellClaim },
): Promise<{ record: SandboxRecord; unheld: string[] }> {
  try {
    await endWhatRuns(fleet, before)
    return commit(fleet, savedStates, before, options)
  } catch (error) {
    if (before.status === 'running')
      await start(fleet, fleet.record(before.id), options.claim).catch(() => {})
    // What it holds too much until then is let go of by the next one that succeeds, or at the next start.
    await fleet.dropLayers(fleet.layers.holdOnly(before.id, before.root))
    throw asStartError(error)
  }
}

/**
 * From now on a new server does not adopt what runs, but starts over: who follows it is about to be told that it ends. The
 * cell that takes its place has no root yet, or that of another layer, so it is not adopted either.
 */
function exchangeCell(fleet: Fleet, id: string, claim: CellClaim): void {
  fleet.table.save({ ...fleet.record(id), cell: claim.id })
}

async function endWhatRuns(fleet: Fleet, { id }: SandboxRecord): Promise<void> {
  const machine = await fleet.machine(id)
  if (machine) machine.suspended = true
  await fleet.settleFailure(id)
  await fleet.tellSuspended(id, { kept: false })
  await fleet.letGo(id)
}

function commit(
  fleet: Fleet,
  savedStates: SavedStates,
  before: SandboxRecord,
  { saved, data, root }: RestoreOptions & { root: SandboxRecord['root'] },
): { record: SandboxRecord; unheld: string[] } {
  const { env, baseSnapshot, patchesOf } = saved.state
  const workdir = movedPath(saved.state.workdir, saved.state.root.layer, root.layer, fleet.storage)
  const change = { env, workdir, baseSnapshot, patchesOf, root, memory: null, networkDue: false }
  let unheld: string[] = []
  const record = fleet.move(before.id, 'restore', {
    data,
    change,
    also: () => {
      savedStates.giveRows(saved, { ...before, ...change })
      const moved = (path: string) => movedPath(path, before.root.layer, root.layer, fleet.storage)
      new WatcherTable(fleet.db).movePaths(before.id, moved)
      unheld = fleet.layers.holdOnly(before.id, root)
    },
  })
  return { record, unheld }
}

async function start(
  fleet: Fleet,
  record: SandboxRecord,
  claim: CellClaim,
  memory?: string,
): Promise<Restored> {
  const starting = startMachine(fleet, record, claim, { memory })
  fleet.machines.set(record.id, starting)
  try {
    const machine = await starting
    fleet.follow(record.id, machine)
    const begun = fleet.tellBegan({ record, machine }, memory ? 'adopted' : 'restarted')
    begun.catch(() => {})
    return { record, begun }
  } catch (error) {
    const failure = asStartError(error)
    await fleet.letGo(record.id)
    fleet.move(record.id, 'hibernate', { reason: `It could not be started: ${failure.message}` })
    throw failure
  }
}
