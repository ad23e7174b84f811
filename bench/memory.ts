// How much memory the whole machine uses, by what it could not give back.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { median } from './measure.ts'

const READINGS = 5
/** For what the kernel frees and writes a little later. */
const PAUSE_MS = 250

/**
 * Everything but free memory, after the caches were written and dropped, without this process, which keeps samples meanwhile. What
 * programs have mapped stays and counts once however many share it. The median of some readings: other processes breathe.
 */
export async function usedBytes(): Promise<number> {
  const readings: number[] = []
  for (let index = 0; index < READINGS; index++) {
    execFileSync('sync')
    writeFileSync('/proc/sys/vm/drop_caches', '3')
    await setTimeout(PAUSE_MS)
    readings.push(meminfo('MemTotal') - meminfo('MemFree') - process.memoryUsage.rss())
  }
  return median(readings)
}

/** What the kernel itself holds and cannot drop. */
export function kernelBytes(): number {
  return ['SUnreclaim', 'KernelStack', 'PageTables', 'Percpu'].reduce((sum, name) => sum + meminfo(name), 0)
}

function meminfo(name: string): number {
  const text = readFileSync('/proc/meminfo', 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
}
