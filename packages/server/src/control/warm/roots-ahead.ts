// Binds waiting cells ahead of demand. The next sandbox is likely to be like the last ones, so a waiting cell gets the root, name,
// limits and network of one: a create of that kind need not wait. For any other sandbox the cell is bound again.
import { newId } from '@islet/contract'
import type { SandboxRecord } from '../../db/sandboxes.ts'
import type { BindOptions, Bound, Root } from '../../engine/engine.ts'
import { giveRoot } from '../machine.ts'
import { makeLayer, stackOf } from '../saved/roots.ts'
import type { CellParts, WaitingCell } from './cells.ts'

/** What a cell is bound to, without the id of the sandbox. */
export interface Plan extends Pick<SandboxRecord, 'resources'>, Pick<BindOptions, 'network'> {
  /** Equal plans have equal keys. */
  key: string
  trees: Root['trees']
  /** The saved root that its layer begins with. */
  over?: Root
}

export interface RootAhead {
  plan: Plan
  /** The id of the sandbox that it will become. */
  id: string
  layer: string
  bound: Bound
}

export function planOf({ root, resources, network }: SandboxRecord, over?: Root): Plan {
  const { trees } = root
  const key = JSON.stringify([trees, over?.layer, resources, network.enabled])
  return { key, trees, over, resources, network: { enabled: network.enabled } }
}

/** On an error stop the cell, which also deletes the layer. */
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

/** Whether it needs one of these layers, or a clone of one. */
export function standsOn({ trees, over }: Plan, layers: readonly string[]): boolean {
  return stackOf({ layer: over?.layer ?? '', trees }).some((layer) => layers.includes(layer))
}
