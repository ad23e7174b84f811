// Removes a server from a machine: its sandboxes, their resources, and its data directory.
import { existsSync } from 'node:fs'
import { readdir, realpath, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { tearDown } from '../engine/teardown.ts'
import { claimInstance } from '../instance.ts'

/** Every name that a server creates in its data directory. */
const OURS =
  /^(islet\.db(-wal|-shm|-journal)?|\.?islet\.sock(\.new)?|key|token-key|config\.json|pool|pool\.img(\.tmp)?|ballast|images|output|memory|workspaces|run|server\.\d+\.json|\.(key|token-key|server)\..*)$/

interface Removal {
  /** Other names in the data directory: they stay, and so does the directory. */
  left: string[]
}

/** Whether this is, or was, the data directory of a server. */
export function isDataDir(path: string): boolean {
  return ['islet.db', 'token-key'].some((name) => existsSync(join(path, name)))
}

/** Throws `conflict` while a server uses the directory. After a crash it can be called again. */
export async function removeServer(path: string): Promise<Removal> {
  if (!isDataDir(path)) {
    throw new IsletError('bad_request', `${path} is not the data directory of a server.`, {
      hint: 'ISLET_DATA_DIR or --data-dir says where it is.',
    })
  }
  const dataDir = await realpath(path)
  // From here on no server can start on this directory.
  const instance = await claimInstance({ dataDir }).catch((error: IsletError) => {
    if (error.code !== 'conflict') throw error
    throw new IsletError('conflict', error.message, { hint: 'Stop that server, then run this again.' })
  })
  const name = instance.slot === undefined ? undefined : instance.cgroup
  await tearDown({ name, runDir: instance.runDir, dataDir })
  const entries = (await readdir(dataDir)).filter((entry) => OURS.test(entry))
  // The files that mark a data directory are removed last.
  const isMark = (entry: string) => /^(islet\.db|token-key|server\..*)/.test(entry)
  for (const entry of entries.sort((a, b) => Number(isMark(a)) - Number(isMark(b)))) {
    if (!entry.startsWith('server.')) await rm(join(dataDir, entry), { recursive: true, force: true })
  }
  await instance.release()
  const left = await readdir(dataDir)
  if (left.length === 0) await rmdir(dataDir)
  await rmdir('/run/islet').catch(() => {}) // other servers are there
  return { left }
}
