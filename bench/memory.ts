// The memory that the whole machine uses and cannot free.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { median } from './measure.ts'

const READINGS = 5
/** Time for the kernel to free and write memory. */
const PAUSE_MS = 250

/** The processes whose memory counts, by name or id. Memory of the kernel always counts. */
export interface Owners {
  names: readonly string[]
  pids?: readonly number[]
}

/**
 * Everything but free memory, after the caches were written and dropped, without the private memory of other processes, like the bench
 * itself, which collects samples. Shared mappings count once. The median of some readings, because they fluctuate.
 */
export async function usedBytes(owners: Owners): Promise<number> {
  const readings: number[] = []
  for (let index = 0; index < READINGS; index++) {
    execFileSync('sync')
    writeFileSync('/proc/sys/vm/drop_caches', '3')
    await setTimeout(PAUSE_MS)
    readings.push(meminfo('MemTotal') - meminfo('MemFree') - othersBytes(owners))
  }
  return median(readings)
}

/** The kernel's own memory that it cannot drop. */
export function kernelBytes(): number {
  return ['SUnreclaim', 'KernelStack', 'PageTables', 'Percpu'].reduce((sum, name) => sum + meminfo(name), 0)
}

function meminfo(name: string): number {
  return kilobytes(readFileSync('/proc/meminfo', 'utf8'), name)
}

function othersBytes({ names, pids = [] }: Owners): number {
  let sum = 0
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || pids.includes(Number(entry))) continue
    try {
      const status = readFileSync(`/proc/${entry}/status`, 'utf8')
      const name = /^Name:\s+(.*)$/m.exec(status)?.[1]
      if (!names.includes(name ?? '')) sum += kilobytes(status, 'RssAnon')
    } catch {
      // The process has already ended.
    }
  }
  return sum
}

function kilobytes(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
}
