import { type CreatePatch, IsletError, isId, type PatchInfo, type PatchRun } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard } from '../options.ts'

interface Abortable {
  signal?: AbortSignal
}

/** Scripts of checkpoints: each is run once in every sandbox made from its checkpoint. */
export class Patches {
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  /** Behind those that the checkpoint has. Sandboxes that were made from it get it when they wake. */
  async create(checkpointId: string, patch: CreatePatch, options: Abortable = {}): Promise<PatchInfo> {
    const params = { cid: checkedCheckpoint(checkpointId) }
    return this.#client.call('createPatch', { params, body: patch, ...options })
  }

  /** In the order they are applied. */
  async list(checkpointId: string, options: Abortable = {}): Promise<PatchInfo[]> {
    const params = { cid: checkedCheckpoint(checkpointId) }
    return (await this.#client.call('listPatches', { params, ...options })).patches
  }

  /** Where it was applied it stays so. Code `patch_not_found` if the checkpoint has none of that id. */
  async delete(checkpointId: string, patchId: string, options: Abortable = {}): Promise<void> {
    const params = { cid: checkedCheckpoint(checkpointId), patch: checkedPatch(patchId) }
    await this.#client.call('deletePatch', { params, ...options })
  }
}

export async function listPatches(
  client: Client,
  sandboxId: string,
  options: Abortable = {},
): Promise<PatchRun[]> {
  return (await client.call('listSandboxPatches', { params: { id: sandboxId }, ...options })).patches
}

// What is no id must not lead to another address. A missing one is refused where the path is made.
function checkedCheckpoint(id: string): string {
  if (!id || isId('checkpoint', id)) return id
  throw new IsletError('checkpoint_not_found', `There is no checkpoint ${String(id).slice(0, 64)}.`)
}

function checkedPatch(id: string): string {
  if (!id || isId('patch', id)) return id
  throw new IsletError('patch_not_found', `There is no patch ${String(id).slice(0, 64)}.`)
}

guard(Patches.prototype, 'islet.checkpoints.patches', {
  create: [null, null, ABORTABLE],
  list: [null, ABORTABLE],
  delete: [null, null, ABORTABLE],
})
