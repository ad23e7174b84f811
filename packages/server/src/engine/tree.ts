// A process with all its descendants. Its first process is a subreaper, so orphans stay in the tree.
import { readdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, type ProcessIdentity, readStat, signal } from '../lib/proc.ts'

// USER_HZ: the kernel uses 100 ticks a second in /proc.
const TICK_USEC = 10_000
const PAGE_BYTES = 4096
const DEATH_TRIES = 500
const DEATH_PAUSE_MS = 10

/** The living processes of the tree, the first one included. */
export async function treeOf(root: number): Promise<number[]> {
  const children = new Map<number, number[]>()
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = readStat(Number(entry))
    if (!stat || stat.dead) continue
    const siblings = children.get(stat.parent)
    if (siblings) siblings.push(Number(entry))
    else children.set(stat.parent, [Number(entry)])
  }
  const tree = [root]
  for (const pid of tree) tree.push(...(children.get(pid) ?? []))
  return tree
}

/** Stops all processes before it kills any, so that none escapes by forking. */
export async function killTree(root: ProcessIdentity): Promise<void> {
  if (!isRunning(root)) return
  const stopped = new Set<number>()
  for (let isNew = true; isNew; ) {
    isNew = false
    for (const pid of await treeOf(root.pid)) {
      if (stopped.has(pid)) continue
      signal(pid, 'SIGSTOP')
      stopped.add(pid)
      isNew = true
    }
  }
  for (const pid of [...stopped].reverse()) signal(pid, 'SIGKILL')
  for (let i = 0; i < DEATH_TRIES && isRunning(root); i++) await sleep(DEATH_PAUSE_MS)
}

export async function treeUsage(
  root: number,
): Promise<{ memoryBytes: number; cpuUsec: number; pids: number }> {
  const usage = { memoryBytes: 0, cpuUsec: 0, pids: 0 }
  for (const pid of await treeOf(root)) {
    const stat = readStat(pid)
    if (!stat) continue
    usage.cpuUsec += stat.cpuTicks * TICK_USEC
    usage.memoryBytes += stat.residentPages * PAGE_BYTES
    usage.pids++
  }
  return usage
}
