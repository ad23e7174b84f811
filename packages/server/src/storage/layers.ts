// Storage over the warden. How a layer is cloned is the warden's business; here are names, numbers and promises.
import type { Warden } from '../warden/warden.ts'
import type { Pool } from './pool.ts'
import type { CloneMethod, LayerOptions, Storage, StorageCapabilities } from './storage.ts'

/** The warden must have been started on the pool's data directory with the pool's method. */
export function createStorage(warden: Warden, pool: Pool): Storage {
  const capabilities: StorageCapabilities = { clone: warden.method, diskLimit: warden.quota, stacks: true }
  return {
    capabilities,

    async create(layer: string, options: LayerOptions = {}) {
      await warden.request('LAYER_CREATE', { layer, limitBytes: options.limitBytes ?? 0 })
    },

    async clone(from, to, options = {}) {
      const limitBytes = options.limitBytes ?? 0
      const done = await warden.request('LAYER_CLONE', {
        from,
        to,
        limitBytes,
        readOnly: options.readOnly ? 1 : 0,
      })
      return { method: done.method as CloneMethod, durationMs: (done.durationUs ?? 0) / 1000 }
    },

    async flatten(from, to) {
      await warden.request('LAYER_FLATTEN', { from: [...from], to })
    },

    async delete(layer) {
      await warden.request('LAYER_DELETE', { layer })
    },

    async setLimit(layer, limitBytes) {
      await warden.request('LAYER_LIMIT', { layer, limitBytes: limitBytes ?? 0 })
    },

    async usageBytes(layer) {
      return (await warden.request('LAYER_USAGE', { layer })).bytes ?? 0
    },

    async list() {
      return ((await warden.request('LAYER_LIST', {})).name ?? []).sort()
    },

    close: () => pool.close(),
  }
}
