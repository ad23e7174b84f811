// `true` over HTTP on a live sandbox: one caller, then 32 at once.
import type { Figure } from '../figure.ts'
import { round, sample, sampleAtOnce } from '../measure.ts'
import { BenchServer, runTrue } from '../server.ts'

const CALLERS = 32
/** A server that has just started runs code that is not compiled yet. */
const WARMUP = 1000

export const execFigure: Figure = {
  method:
    '`true` as argv on a live sandbox, over HTTP by the SDK, to the result with exit code and output: 2,000 calls one after another after 1,000 that do not count, ' +
    'then 4,000 by 32 callers at once. Docker: `docker exec` of `true` by its command line. Floor: a bare `posix_spawn` of `true` by a ' +
    'small C program that is asked over a unix socket (`bench/floor/spawn.c`): no wall, no HTTP, no output kept.',

  async measure({ docker, floor, quick }) {
    const calls = quick ? 500 : 4000
    await using server = await BenchServer.start()
    const sandbox = await server.create()
    await server.filled()
    const one = await sample('exec', quick ? 200 : 2000, quick ? 100 : WARMUP, () => runTrue(sandbox))
    const bare = await floor.spawn(quick ? 200 : 2000)
    const many = await perSecond(calls, () =>
      sampleAtOnce('exec, 32 at once', calls, CALLERS, () => runTrue(sandbox)),
    )
    const callers = await Promise.all(Array.from({ length: CALLERS }, () => floor.spawner.connect()))
    const bareMany = await perSecond(calls, () =>
      sampleAtOnce('bare posix_spawn, 32 at once', calls, CALLERS, (way) => callers[way]!(['true'])),
    )
    const container = await docker?.start()
    const dockerExec =
      docker && (await sample('docker exec', quick ? 5 : 50, 2, () => docker.exec(container!, ['true'])))
    await docker?.remove([container!])
    return [
      {
        id: 'exec',
        figure: 'exec',
        unit: 'ms',
        islet: one.summary(),
        docker: dockerExec?.summary(),
        floor: bare,
        note: '`docker exec`; `posix_spawn`',
      },
      {
        id: 'exec-32-each',
        figure: 'exec, 32 at once, each',
        unit: 'ms',
        islet: many.tally.summary(),
        floor: bareMany.tally.summary(),
        note: '`posix_spawn`',
      },
      {
        id: 'exec-32',
        figure: 'exec, 32 at once',
        unit: 'per second',
        islet: many.rate,
        floor: bareMany.rate,
        note: '`posix_spawn`',
      },
    ]
  },
}

async function perSecond<T>(calls: number, work: () => Promise<T>): Promise<{ tally: T; rate: number }> {
  const started = performance.now()
  const tally = await work()
  return { tally, rate: round(calls / ((performance.now() - started) / 1000)) }
}
