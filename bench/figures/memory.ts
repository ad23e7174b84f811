// What an idle sandbox costs: how much memory the whole machine holds before and after making 50, by the kernel's own
// account of everything that cannot simply be dropped, and what the cgroups say.
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import type { Figure } from '../figure.ts'
import { round } from '../measure.ts'

const COUNT = 50
// For what the kernel frees and writes a little later.
const SETTLE_MS = 3000
const MIB = 1024 * 1024

export const memoryFigure: Figure = async ({ create, server, quick }) => {
  const count = quick ? 10 : COUNT
  // The first one pays for what all share: page cache of the guest, the image.
  const first = await create()
  await setTimeout(SETTLE_MS)
  const before = { held: heldBytes(), server: rssBytes(server.pid) }
  const sandboxes: Sandbox[] = []
  for (let index = 0; index < count; index++) sandboxes.push(await create())
  await setTimeout(SETTLE_MS)
  const held = (heldBytes() - before.held) / count
  const growth = (rssBytes(server.pid) - before.server) / count
  const accounts = await Promise.all(sandboxes.map(async (sandbox) => (await sandbox.usage()).memoryBytes))
  await Promise.all([first, ...sandboxes].map((sandbox) => sandbox.kill()))
  const mean = accounts.reduce((sum, bytes) => sum + bytes, 0) / count
  return [
    {
      figure: `idle sandbox, all-in, at ${count}`,
      islet: round(held / MIB),
      unit: 'MiB',
      note: 'processes, slabs, page tables, stacks, per-CPU',
    },
    { figure: `idle sandbox, its cgroup, at ${count}`, islet: round(mean / MIB), unit: 'MiB' },
    { figure: `idle sandbox, server's share, at ${count}`, islet: round(growth / MIB), unit: 'MiB' },
  ]
}

/** Free memory would be simpler, but it also moves with the page cache and with what earlier work still gives back. */
const HELD = ['AnonPages', 'Shmem', 'Slab', 'PageTables', 'KernelStack', 'Percpu']

function heldBytes(): number {
  const text = readFileSync('/proc/meminfo', 'utf8')
  return HELD.reduce(
    (sum, name) => sum + Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024,
    0,
  )
}

function rssBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}
