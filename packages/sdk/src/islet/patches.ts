import type { CreatePatch, PatchInfo } from '@islet/contract/client'
import { Part } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { checkedCheckpoint, checkedPatch } from './refs.ts'

/** Scripts of checkpoints. Each runs once in every sandbox made from its checkpoint. */
export class Patches extends Part {
  /** Adds a patch after the existing ones. Sandboxes that were made from the checkpoint run it when they wake. */
  async create(checkpointId: string, patch: CreatePatch, options: Abortable = {}): Promise<PatchInfo> {
    const params = { cid: checkedCheckpoint(checkpointId) }
    return this.client.call('createPatch', { params, body: patch, ...options })
  }

  /** In the order in which they are applied. */
  async list(checkpointId: string, options: Abortable = {}): Promise<PatchInfo[]> {
    const params = { cid: checkedCheckpoint(checkpointId) }
    return (await this.client.call('listPatches', { params, ...options })).patches
  }

  /** Sandboxes that already ran the patch keep its effects. Code `patch_not_found` if the checkpoint has no such patch. */
  async delete(checkpointId: string, patchId: string, options: Abortable = {}): Promise<void> {
    const params = { cid: checkedCheckpoint(checkpointId), patch: checkedPatch(patchId) }
    await this.client.call('deletePatch', { params, ...options })
  }
}

guard(Patches.prototype, 'islet.checkpoints.patches', {
  create: [null, null, ABORTABLE],
  list: [null, ABORTABLE],
  delete: [null, null, ABORTABLE],
})
