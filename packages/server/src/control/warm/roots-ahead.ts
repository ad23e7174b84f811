// Roots that are given before anybody asks. What is asked for next is likely what was asked for lately, so a cell that waits gets
// the root, name, limits and network of such a sandbox; whoever wants just that has nothing to wait for. For anybody else the
// cell is bound again.
import { newId } from '@islet/contract'
import type { SandboxRecord } from '../../db/sandboxes.ts'
import type { Bound, Root } from '../../engine/engine.ts'
import { giveRoot } from '../machine.ts'
import { makeLayer, stackOf } from '../saved/roots.ts'
import type { CellParts, WaitingCell } from './cells.ts'

/** All of a sandbox that its cell shows, but who it is. */
export interface Plan extends Pick<SandboxRecord, 'resources' | 'network'> {
  /** Plans of the same key are the same. */
  key: string
  trees: Root['trees']
  /** Its layer begins as the one of this. */
  over?: Root
}

export interface RootAhead {
  plan: Plan
  /** Who it is to be. */
  id: string
  layer: string
  bound: Bound
}

export function planOf({ root, resources, network }: SandboxRecord, over?: Root): Plan {
  const { trees } = root
  return { key: JSON.stringify([trees, over?.layer, resources, network]), trees, over, resources, network }
}

/** On an error, stop the cell: what was made of the root goes with it. */
export async function giveRootAhead(parts: CellParts, waiting: WaitingCell, plan: Plan): Promise<void> {
  const { trees, over, resources, network } = plan
  const [id, layer] = [newId('sandbox'), newId('layer')]
  const ahead: RootAhead = { plan, id, layer, bound: {} }
  waiting.ahead = ahead
  await makeLayer(parts.storage, { layer, over, limitBytes: resources.diskBytes })
  ahead.bound = await giveRoot(
    parts,
    waiting,
    { id, root: { layer, trees }, resources, network },
    { ahead: true },
  )
}

/** Whether it stands on one of these layers, or on a copy of it. */
export function standsOn({ trees, over }: Plan, layers: readonly string[]): boolean {
  return stackOf({ layer: over?.layer ?? '', trees }).some((layer) => layers.includes(layer))
}
