// What an idle sandbox costs: the machine's available memory before and after making 50, and the cgroups' own account.
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import type { Figure } from '../figure.ts'
import { round } from '../measure.ts'

const COUNT = 50
const MIB = 1024 * 1024

export const memoryFigure: Figure = async ({ create, server, quick }) => {
  const count = quick ? 10 : COUNT
  // The first one pays for what all share: page cache of the guest, the image.
  const first = await create()
  await setTimeout(500)
  const before = { available: availableBytes(), server: rssBytes(server.pid) }
  const sandboxes: Sandbox[] = []
  for (let index = 0; index < count; index++) sandboxes.push(await create())
  await setTimeout(1000)
  const available = (before.available - availableBytes()) / count
  const growth = (rssBytes(server.pid) - before.server) / count
  const accounts = await Promise.all(sandboxes.map(async (sandbox) => (await sandbox.usage()).memoryBytes))
  await Promise.all([first, ...sandboxes].map((sandbox) => sandbox.kill()))
  const mean = accounts.reduce((sum, bytes) => sum + bytes, 0) / count
  return [
    {
      figure: `idle sandbox, all-in, at ${count}`,
      islet: round(available / MIB),
      unit: 'MiB',
      note: "fall of the machine's available memory",
    },
    { figure: `idle sandbox, its cgroup, at ${count}`, islet: round(mean / MIB), unit: 'MiB' },
    { figure: `idle sandbox, server's share, at ${count}`, islet: round(growth / MIB), unit: 'MiB' },
  ]
}

function availableBytes(): number {
  return Number(/MemAvailable:\s+(\d+) kB/.exec(readFileSync('/proc/meminfo', 'utf8'))![1]) * 1024
}

function rssBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}
