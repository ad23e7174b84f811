// Text that is not an id or tag must not lead to another URL. A missing one is refused by `routePath`.
import { IsletError, isId } from '@islet/contract/client'

export function checkedCheckpoint(id: string): string {
  if (!id || isId('checkpoint', id)) return id
  throw new IsletError('checkpoint_not_found', `There is no checkpoint ${String(id).slice(0, 64)}.`, {
    hint: 'Give the id of a checkpoint, ckp-…, not its name.',
  })
}

export function checkedPatch(id: string): string {
  if (!id || isId('patch', id)) return id
  throw new IsletError('patch_not_found', `There is no patch ${String(id).slice(0, 64)}.`)
}

/** The id or tag of a snapshot. */
export function checkedSnapshot(ref: string): string {
  if (!ref || /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(ref)) return ref
  throw new IsletError('snapshot_not_found', `There is no snapshot ${String(ref).slice(0, 128)}.`)
}
