// How much memory the whole machine uses for something, by what it could not give back.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { median } from './measure.ts'

const READINGS = 5
/** For what the kernel frees and writes a little later. */
const PAUSE_MS = 250

/** Whose memory is asked for: processes by name or id. The kernel's is everyone's. */
export interface Owners {
  names: readonly string[]
  pids?: readonly number[]
}

/**
 * Everything but free memory, after the caches were written and dropped, without what processes of others hold for themselves: the bench,
 * which keeps samples meanwhile, and whatever else runs. What programs have mapped counts once however many share it. The median of
 * some readings, for the machine breathes.
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

/** What the kernel itself holds and cannot drop. */
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
      // It has ended meanwhile.
    }
  }
  return sum
}

function kilobytes(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
}
