// Takes a sandbox back to a saved state, under the same id.
//
//   hold and make a layer over the saved one, name a new cell  →  end processes  →  one transaction: root, env, store, services  →  start
//
// After a crash before the transaction the sandbox restarts as it was; after the transaction, as it was saved. If it cannot be
// started it stays hibernated with its new root, and the next wake tries again.
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
  /** Data of the event. */
  data: SandboxEvent['data']
}

interface Restored {
  record: SandboxRecord
  /** Resolves when all observers have been told, which may take long: await it after the turn. */
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
  // If no cell waits, one is started while the layer is made and processes end.
  await using claim = fleet.warm.claim()
  const layer = newId('layer')
  const root = rootOver(saved.state.root, layer, fleet.storage)
  fleet.layers.hold(sandboxId, root)
  try {
    const limitBytes = before.resources.diskBytes
    await makeLayer(fleet.storage, { layer, over: saved.state.root, limitBytes })
    nameNewCell(fleet, sandboxId, claim)
  } catch (error) {
    await fleet.dropLayers(fleet.layers.holdOnly(sandboxId, before.root))
    throw asStartError(error)
  }
  fleet.unsteady.add(sandboxId)
  try {
    const restored = await replaceState(fleet, savedStates, before, { ...options, root, claim })
    fleet.dropLater(restored.unheld)
    if (before.memory !== null) await savedStates.memory.remove(before.memory)
    return await start(fleet, restored.record, claim, savedStates.memoryOf(saved))
  } finally {
    fleet.unsteady.delete(sandboxId)
  }
}

/** If the transaction fails on a full disk, the sandbox restarts as it was, which needs no write. */
async function replaceState(
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
    // If this fails too, the next restore or the next start drops the extra layer.
    await fleet.dropLayers(fleet.layers.holdOnly(before.id, before.root))
    throw asStartError(error)
  }
}

/**
 * From now on a new server starts the sandbox again instead of adopting the old cell, whose processes are about to end. It does not
 * adopt the new cell either: that has no root yet, or one of another layer.
 */
function nameNewCell(fleet: Fleet, id: string, claim: CellClaim): void {
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
