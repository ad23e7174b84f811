import type { ServerInfo } from '@islet/contract'
import { VERSION } from '../version.ts'
import type { Fleet } from './fleet.ts'

/** What this server is and what it can do. */
export function serverInfo(
  { capacity, disk, engine, storage, table, warm }: Fleet,
  startedAt: Date,
): ServerInfo {
  const { engine: name, isolation, ...capabilities } = engine.capabilities
  return {
    version: VERSION,
    engine: name,
    isolation,
    capabilities,
    machine: capacity.has,
    storage: storage.capabilities,
    disk: disk.info(),
    sandboxes: table.countLive(),
    warm: warm.info(),
    startedAt: startedAt.toISOString(),
  }
}
