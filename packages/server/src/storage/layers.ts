// Storage over the warden, which makes and clones the layers.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { coalesced } from '../lib/coalesced.ts'
import { Walks } from '../lib/walks.ts'
import type { Warden } from '../warden/warden.ts'
import { Growth } from './growth.ts'
import type { Pool } from './pool.ts'
import { freeBytes, totalBytes } from './room.ts'
import type { CloneMethod, LayerOptions, Storage, StorageCapabilities } from './storage.ts'

/** Half of the warden's workers that walk over trees. */
const MAX_WALKS = 2

/** The warden must have been started on the pool's data directory with the pool's method. */
export function createStorage(warden: Warden, pool: Pool): Storage {
  const capabilities: StorageCapabilities = { clone: warden.method, diskLimit: warden.quota, stacks: true }
  // A sync may take long, and the workers of the warden also have to kill and freeze, so concurrent callers share one.
  const sync = coalesced(async () => {
    await warden.request('LAYER_SYNC', {})
  })
  const walks = new Walks(MAX_WALKS)
  const usageBytes = (layer: string) =>
    walks.of(layer, async () => (await warden.request('LAYER_USAGE', { layer })).bytes ?? 0)
  const growth = new Growth(usageBytes)
  return {
    capabilities,

    async create(layer: string, options: LayerOptions = {}) {
      await warden.request('LAYER_CREATE', { layer, limitBytes: options.limitBytes ?? 0 })
    },

    async clone(from, to, options = {}) {
      const { limitBytes = 0, readOnly = false } = options
      const done = await warden.request('LAYER_CLONE', { from, to, limitBytes, readOnly: readOnly ? 1 : 0 })
      const method = done.method as CloneMethod
      // A read-only btrfs snapshot is durable when the kernel answers, but a limit that is set afterwards is not.
      const durable = method === 'btrfs' && readOnly && limitBytes === 0
      return { method, durationMs: (done.durationUs ?? 0) / 1000, durable }
    },

    async flatten(from, to) {
      await warden.request('LAYER_FLATTEN', { from: [...from], to })
      await sync()
    },

    async delete(layer) {
      await warden.request('LAYER_DELETE', { layer })
    },

    async setLimit(layer, limitBytes) {
      await warden.request('LAYER_LIMIT', { layer, limitBytes: limitBytes ?? 0 })
    },

    usageBytes,

    sizeBytes: () => Math.min(pool.limitBytes, totalBytes(dirname(pool.dir))),

    room: () => pool.elastic?.room() ?? { freeBytes: freeBytes(pool.dir), moreBytes: 0 },

    async growing(layers) {
      const counted = (await pool.elastic?.layerBytes(layers)) ?? new Map<string, number>()
      const others = layers.filter((layer) => !counted.has(layer))
      return new Map([...counted, ...growth.of(others)])
    },

    giveBack: async () => pool.elastic?.shrink(),

    treePath: (layer, tree) => join(pool.dir, 'layers', layer, tree),

    async list() {
      return ((await warden.request('LAYER_LIST', {})).name ?? []).sort()
    },

    // Synchronous: every create from a saved state asks, and another thread would take a hundred times as long.
    has: async (layer) => existsSync(join(pool.dir, 'layers', layer)),

    sync,

    close: () => pool.close(),
  }
}
