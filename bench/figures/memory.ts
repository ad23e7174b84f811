// The memory of an idle sandbox: the slope of the machine's used memory over the number of sandboxes.
import type { Sandbox } from 'islet'
import type { Docker } from '../docker.ts'
import type { Figure } from '../figure.ts'
import { fit, type Line, round, Tally } from '../measure.ts'
import { kernelBytes, usedBytes } from '../memory.ts'
import { BenchServer, COLD, runTrue } from '../server.ts'
import { MIB } from '../sizes.ts'

const COUNTS = [0, 50, 100, 200, 300]
const QUICK_COUNTS = [0, 10, 20, 40]
const DOCKER_COUNTS = [0, 10, 20, 30]
/** /proc cuts names to 15 characters. */
const DOCKER_OWNERS = { names: ['dockerd', 'containerd', 'containerd-shim', 'sleep'] }
const AT_ONCE = 8

export const memoryFigure: Figure = {
  method:
    'Sandboxes are made (no pool), each runs `true` once and is left alone; at 0, 50, 100, 200 and 300 of them the memory that the machine ' +
    'uses is read: all but free memory after `sync` and dropping the caches, the median of five readings, without what processes of others hold. The ' +
    "figure is the slope of the line of least squares: processes, kernel, the server's growth and whatever else grows, while what all " +
    "share (the guest's code, the image) counts nothing. ± is the standard error of the slope. The parts beside it are a check: the mean of " +
    "the cgroups' own accounts (which hold part of the kernel's), the slope of the server's resident set, the slope of the kernel's " +
    'unreclaimable slabs, stacks, page tables and per-CPU memory. Docker: the same with `sleep` in containers, at 0, 10, 20 and 30.',

  async measure({ docker, quick }) {
    const tally = new Tally('idle memory')
    const sandboxes: Sandbox[] = []
    const [used, server, kernel]: [number, number][][] = [[], [], []]
    await using bench = await BenchServer.start(COLD)
    const add = async () => {
      const sandbox = await bench.create()
      sandboxes.push(sandbox)
      await runTrue(sandbox)
    }
    // The first sandboxes load what all share.
    await grow(tally, AT_ONCE, add)
    const already = sandboxes.length
    for (const count of quick ? QUICK_COUNTS : COUNTS) {
      await grow(tally, count + already - sandboxes.length, add)
      used!.push([count, (await usedBytes(bench.owners)) / MIB])
      server!.push([count, bench.rssBytes / MIB])
      kernel!.push([count, kernelBytes() / MIB])
    }
    const accounts = await Promise.all(sandboxes.map(async (sandbox) => (await sandbox.usage()).memoryBytes))
    const cgroup = accounts.reduce((sum, bytes) => sum + bytes, 0) / accounts.length / MIB
    const line = fit(used!)
    const containers = docker && (await dockerLine(docker))
    return [
      {
        id: 'memory-all-in',
        figure: 'idle sandbox, all-in memory',
        unit: 'MiB',
        islet: round(line.slope),
        docker: containers && round(containers.slope),
        note: `± ${round(line.error)}${tally.failed > 0 ? `, ${tally.failed} creates failed` : ''}${containers ? `; a container ± ${round(containers.error)}` : ''}`,
        points: used!.map(([count, mib]) => [count, round(mib - line.intercept)]),
      },
      {
        id: 'memory-cgroup',
        figure: 'idle sandbox, by its cgroup',
        unit: 'MiB',
        islet: round(cgroup),
        note: 'mean; part of the above',
      },
      ...(
        [
          ['memory-server', "idle sandbox, server's growth", server!],
          ['memory-kernel', "idle sandbox, kernel's own memory", kernel!],
        ] as const
      ).map(([id, figure, points]) => {
        const { slope, error } = fit(points)
        return { id, figure, unit: 'MiB', islet: round(slope), note: `± ${round(error)}; part of the above` }
      }),
    ]
  },
}

/** Adds this many, several at once; counts failures. */
export async function grow(tally: Tally, count: number, add: () => Promise<void>): Promise<void> {
  let left = count
  const caller = async () => {
    while (left-- > 0) await tally.attempt(add)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))
}

async function dockerLine(docker: Docker): Promise<Line> {
  const tally = new Tally('docker run, idle')
  const ids: string[] = []
  const points: [number, number][] = []
  for (const count of DOCKER_COUNTS) {
    await grow(tally, count - ids.length, async () => void ids.push(await docker.start()))
    points.push([count, (await usedBytes(DOCKER_OWNERS)) / MIB])
  }
  await docker.remove(ids)
  return fit(points)
}
