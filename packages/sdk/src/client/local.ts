// A server on the same machine: its data directory, socket and key file. Browsers have none of these.
import { DEFAULTS } from '@islet/contract/client'
import { environment, isNode, nodeProcess, ownUid } from '../platform.ts'

export const ROOTS_DIRECTORY = '/var/lib/islet'

/** ISLET_DATA_DIR, else /var/lib/islet for root, else the user's data directory. Undefined in browsers. */
export function dataDirectory(): string | undefined {
  const env = environment()
  if (env.ISLET_DATA_DIR) return env.ISLET_DATA_DIR
  if (ownUid() === 0) return ROOTS_DIRECTORY
  if (env.XDG_DATA_HOME?.startsWith('/')) return `${env.XDG_DATA_HOME}/islet`
  return env.HOME ? `${env.HOME}/.local/share/islet` : undefined
}

/** The directories that may hold a server's data: only ISLET_DATA_DIR if it is set, else in our own directory, then in root's. */
export function dataDirectories(): string[] {
  const named = environment().ISLET_DATA_DIR
  const all = named ? [named] : [dataDirectory(), ROOTS_DIRECTORY]
  return [...new Set(all.filter((directory) => directory !== undefined))]
}

export interface FoundKey {
  key?: string
  /** The file that holds the key. */
  path?: string
  /** A key file that we may not read. */
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

/** The first data directory that has a socket. */
export function findSocket(): { directory: string; path: string } | undefined {
  const fs = isNode() ? nodeProcess()?.getBuiltinModule?.('node:fs') : undefined
  for (const directory of fs ? dataDirectories() : []) {
    const path = `${directory}/${DEFAULTS.socketName}`
    try {
      if (fs!.statSync(path, { throwIfNoEntry: false })?.isSocket()) return { directory, path }
    } catch {
      // a directory that we may not enter
    }
  }
  return undefined
}
