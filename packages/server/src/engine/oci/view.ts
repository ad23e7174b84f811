// Shows programs the memory and cores of their sandbox instead of the machine's. `free` and others read /proc/meminfo, Python's
// os.cpu_count() reads the list of cores. Both are files in the link directory that are bind-mounted over the kernel's when the
// cell is started, so that a create costs only two small writes.
import { chmodSync, closeSync, constants, ftruncateSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Limits } from '../engine.ts'

const FILES = { meminfo: '/proc/meminfo', cpus: '/sys/devices/system/cpu/online' }

/** Mounts for the cell's config.json. The files must exist before the cell is started. */
export function viewMounts(linkDir: string): object[] {
  return Object.entries(FILES).map(([name, destination]) => ({
    destination,
    type: 'bind',
    source: join(linkDir, name),
    options: ['bind', 'ro', 'nosuid', 'nodev', 'noexec', 'private'],
  }))
}

/** Makes the empty files, before the cell is started. */
export function makeView(linkDir: string): void {
  for (const name of Object.keys(FILES)) {
    writeFileSync(join(linkDir, name), '')
    chmodSync(join(linkDir, name), 0o444)
  }
}

/** `usedBytes`: memory that cannot be reclaimed now. Does nothing for a cell without these files, made by an older server. */
export function writeView(linkDir: string, limits: Omit<Limits, 'pids'>, usedBytes = 0): void {
  write(join(linkDir, 'meminfo'), meminfo(Math.min(limits.memoryBytes || totalmem(), totalmem()), usedBytes))
  write(join(linkDir, 'cpus'), cpus(limits.cpuMillis))
}

/** Fixed width like the kernel's, so that the length never changes and a reader sees either the old or the new numbers. */
function meminfo(totalBytes: number, usedBytes: number): string {
  const free = Math.max(0, totalBytes - usedBytes)
  const fields: Record<string, number> = {
    ...{ MemTotal: totalBytes, MemFree: free, MemAvailable: free, Buffers: 0, Cached: 0, SwapCached: 0 },
    ...{ Active: totalBytes - free, Inactive: 0, SwapTotal: 0, SwapFree: 0, Dirty: 0, Writeback: 0 },
    ...{ AnonPages: totalBytes - free, Mapped: 0, Shmem: 0, KReclaimable: 0, Slab: 0, SReclaimable: 0 },
    ...{ SUnreclaim: 0 },
  }
  return Object.entries(fields)
    .map(([name, bytes]) => `${`${name}:`.padEnd(16)}${String(Math.floor(bytes / 1024)).padStart(8)} kB\n`)
    .join('')
}

function cpus(cpuMillis: number): string {
  const cores = availableParallelism()
  const count = Math.min(Math.ceil(cpuMillis / 1000) || cores, cores)
  return count === 1 ? '0\n' : `0-${count - 1}\n`
}

/** Writes in place, because the file is mounted. */
function write(path: string, text: string): void {
  let fd: number | undefined
  try {
    fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW)
    ftruncateSync(fd, writeSync(fd, text, 0))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
