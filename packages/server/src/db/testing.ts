// Records and directories for the tests of this room.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { newId, type SandboxStatus } from '@islet/contract'
import type { SandboxRecord } from './sandboxes.ts'

const directories: string[] = []
after(() => {
  for (const directory of directories) rmSync(directory, { recursive: true })
})
export const temporary = () => {
  directories.push(mkdtempSync(join(tmpdir(), 'islet-db-')))
  return directories.at(-1)!
}

export function record(change: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id: newId('sandbox'),
    name: null,
    description: null,
    project: null,
    status: 'running' as SandboxStatus,
    reason: null,
    runtime: 'base',
    image: 'img-1',
    engine: 'oci',
    isolation: 'namespace',
    metadata: {},
    env: {},
    resources: { memoryBytes: 1, cpuMillis: 2, diskBytes: 3, pids: 4 },
    networkDue: false,
    network: { enabled: false, port: null },
    user: 'user',
    workdir: '/home/user',
    keepAwake: false,
    storeAccess: false,
    oneShot: false,
    timeouts: { idleMs: 0, executionMs: 0, pausedMs: 0, onIdle: 'hibernate' },
    suspendedAt: null,
    origin: null,
    baseSnapshot: null,
    patchesOf: null,
    memory: null,
    root: { layer: 'lyr-1', trees: [] },
    cell: 'cel-1',
    createdAt: 1,
    updatedAt: 1,
    stoppedAt: null,
    ...change,
  }
}
