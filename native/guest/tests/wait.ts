// Waiting for things, and looking at processes from outside.
import { readdirSync, readFileSync } from 'node:fs'

/** Generous: the machine may be busy. */
export const WAIT_MS = Number(process.env.GUEST_WAIT_MS ?? 30_000)

export async function within<T>(promise: Promise<T>, what: string, ms = WAIT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`gave up waiting for ${what}`)), ms).unref()
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

export const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms))

/** Polls until the condition is true, for events such as the death of a process. */
export async function until(what: string, holds: () => boolean | Promise<boolean>) {
  const end = Date.now() + WAIT_MS
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`gave up waiting until ${what}`)
    await sleep(10)
  }
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Pids of the direct children, zombies included. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => {
      try {
        const stat = readFileSync(`/proc/${child}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
      } catch {
        return false
      }
    })
}

export function rssKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
}
