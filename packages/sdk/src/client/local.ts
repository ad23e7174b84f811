// A server on the same machine: its socket, its key file, and who listens at an address of this machine. Nothing of it exists in a browser.
import { DEFAULTS } from '@islet/contract/client'
import { environment, isNode, nodeProcess, ownUid } from '../platform.ts'

export const ROOTS_DIRECTORY = '/var/lib/islet'

/** ISLET_DATA_DIR, else /var/lib/islet as root, else the user's data directory. Undefined where there are no files. */
export function dataDirectory(): string | undefined {
  const env = environment()
  if (env.ISLET_DATA_DIR) return env.ISLET_DATA_DIR
  if (ownUid() === 0) return ROOTS_DIRECTORY
  if (env.XDG_DATA_HOME?.startsWith('/')) return `${env.XDG_DATA_HOME}/islet`
  return env.HOME ? `${env.HOME}/.local/share/islet` : undefined
}

/** Where a server of ours, or else root's, may have its data. Whoever names a data directory means that server and no other. */
export function dataDirectories(): string[] {
  const named = environment().ISLET_DATA_DIR
  const all = named ? [named] : [dataDirectory(), ROOTS_DIRECTORY]
  return [...new Set(all.filter((directory) => directory !== undefined))]
}

export interface FoundKey {
  key?: string
  /** Where the key was. */
  path?: string
  /** A file that is there, as far as can be told, and not ours to read. */
  closed?: string
  tried: string[]
}

export function findKey(directories: readonly string[]): FoundKey {
  const found: FoundKey = { tried: directories.map((directory) => `${directory}/key`) }
  const fs = nodeProcess()?.getBuiltinModule?.('node:fs')
  for (const path of fs ? found.tried : []) {
    try {
      const key = fs!.readFileSync(path, 'utf8').trim()
      if (key) return { ...found, key, path }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EACCES') found.closed = path
    }
  }
  return found
}

/** The first data directory with a socket that we may look at. */
export function findSocket(): { directory: string; path: string } | undefined {
  const fs = isNode() ? nodeProcess()?.getBuiltinModule?.('node:fs') : undefined
  for (const directory of fs ? dataDirectories() : []) {
    const path = `${directory}/${DEFAULTS.socketName}`
    try {
      if (fs!.statSync(path, { throwIfNoEntry: false })?.isSocket()) return { directory, path }
    } catch {
      // not for us
    }
  }
  return undefined
}
