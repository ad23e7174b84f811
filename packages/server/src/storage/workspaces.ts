// Storage of engine `process`: a layer is a plain directory, cloned by copying. Needs no root.
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { exists } from '../lib/exists.ts'
import { directoryBytes, syncFilesystem } from './directories.ts'
import { freeBytes, totalBytes } from './room.ts'
import type { Storage } from './storage.ts'

export async function openWorkspaces(directory: string): Promise<Storage> {
  await mkdir(directory, { recursive: true, mode: 0o711 })
  // Left by a copy that was cut off.
  for (const name of await readdir(directory)) {
    if (name.startsWith('.')) await rm(join(directory, name), { recursive: true, force: true })
  }
  const at = (layer: string) => {
    if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(layer))
      throw new IsletError('internal', `'${layer}' is not a layer name.`)
    return join(directory, layer)
  }
  return {
    capabilities: { clone: 'copy', diskLimit: false, stacks: false },
    async create(layer) {
      await mkdir(at(layer), { mode: 0o755 }).catch(explain(layer))
    },
    async clone(from, to) {
      const started = performance.now()
      const staging = join(directory, `.new-${to}`)
      await cp(at(from), staging, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
      await rename(staging, at(to)).catch(explain(to))
      return { method: 'copy', durationMs: performance.now() - started, durable: false }
    },
    async flatten() {
      throw new IsletError('not_supported', 'The layers of engine process are not stacked.')
    },
    async delete(layer) {
      await rm(at(layer), { recursive: true, force: true })
    },
    async setLimit() {
      throw new IsletError('not_supported', 'Engine process does not limit disk space.')
    },
    sizeBytes: () => totalBytes(directory),
    room: () => ({ freeBytes: freeBytes(directory), moreBytes: 0 }),
    growing: async () => new Map(),
    async giveBack() {},
    usageBytes: (layer) => directoryBytes(at(layer)),
    treePath: (layer) => at(layer),
    async list() {
      return (await readdir(directory)).filter((name) => !name.startsWith('.'))
    },
    has: (layer) => exists(at(layer)),
    sync: () => syncFilesystem(directory),
    async close() {},
  }
}

function explain(layer: string) {
  return (error: NodeJS.ErrnoException): never => {
    if (error.code === 'EEXIST' || error.code === 'ENOTEMPTY') {
      throw new IsletError('conflict', `There is a layer ${layer} already.`)
    }
    throw error
  }
}
