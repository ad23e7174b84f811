// Time to interactive as the field measures it: create, then `node -v` with exit code 0; one after another, one each 200 ms, and all at once.
import { setTimeout } from 'node:timers/promises'
import type { Figure, Row } from '../figure.ts'
import { curveOf, Tally } from '../measure.ts'
import { BenchServer, ran, warm } from '../server.ts'

const COMMAND = ['node', '-v']
const STAGGER_MS = 200
const POOL = 110

type Pattern = 'sequential' | 'staggered' | 'burst'

export const interactiveFigure: Figure = {
  method:
    "From the call of create to the result of `node -v` with exit code 0; Node is that of the base image (Debian's), nothing is " +
    'fetched. Sequential: one after another; staggered: one begins every 200 ms; burst: all begin at once. Each is removed after its ' +
    'result, outside the clock. 110 cells wait at the beginning of each pattern and are refilled meanwhile. Docker: `docker run --rm` ' +
    'of the same, n as said. Floor: the same Node by a bare `posix_spawn`, in a chroot of the same files, one after another.',

  async measure({ docker, floor, quick }) {
    const bare = await floor.spawn(quick ? 5 : 50, ['chroot', floor.rootDirectory, ...COMMAND])
    await using server = await BenchServer.start(warm(POOL))
    const rows: Row[] = []
    for (const pattern of ['sequential', 'staggered', 'burst'] as const) {
      const n = quick ? 10 : 100
      await server.filled()
      const tally = new Tally(`time to interactive, ${pattern}`)
      await arrive(pattern, n, async () => {
        const sandbox = await tally.time(async () => {
          const made = await server.create()
          await ran(made, COMMAND)
          return made
        })
        if (sandbox) await tally.attempt(() => sandbox.kill())
      })
      const dockerTally = new Tally(`docker run, ${pattern}`)
      const dockerN = pattern === 'burst' ? n : quick ? 3 : 20
      if (docker) await arrive(pattern, dockerN, () => dockerTally.time(() => docker.run(COMMAND)))
      rows.push({
        id: `interactive-${pattern}`,
        figure: `time to interactive, ${pattern}`,
        unit: 'ms',
        islet: tally.summary(),
        docker: docker && dockerTally.summary(),
        floor: bare,
        curve: curveOf(tally.times),
        note: `${tally.successOf(n)} % succeeded${docker ? `; \`docker run\`, n ${dockerN}, ${dockerTally.successOf(dockerN)} %` : ''}`,
      })
    }
    return rows
  },
}

async function arrive(pattern: Pattern, n: number, visit: () => Promise<unknown>): Promise<void> {
  const visits: Promise<unknown>[] = []
  for (let index = 0; index < n; index++) {
    const done = visit()
    if (pattern === 'sequential') await done
    else visits.push(done)
    if (pattern === 'staggered') await setTimeout(STAGGER_MS)
  }
  await Promise.all(visits)
}
