// A new sandbox to the result of its first command, one after another: made from nothing, out of the pool, out of the pool on a snapshot, and with packages.
import type { Sandbox } from 'islet'
import type { Figure, Row } from '../figure.ts'
import { sample, Tally } from '../measure.ts'
import { BenchServer, COLD, ran, runTrue, warm } from '../server.ts'

/** A server that has just started runs code that is not compiled yet. */
const WARMUP = 100
/** How many cells wait when a sample begins. */
const POOL = 4
const PACKAGES = { packages: ['cowsay'] }

export const createFigure: Figure = {
  method:
    'One sandbox after another is made, runs `true` and is removed, after 100 that do not count; removal has its own line. Cold: a server whose pool is off. ' +
    'Warm: a server with 4 cells waiting, each sample begins when all 4 are ready; as every sample asks for the same, at least one waits with the root of such a ' +
    'sandbox. Not like those before: each asks for another size of memory, so no root that waits is the right one. From a snapshot: all from one snapshot that ' +
    'has a file of its own. With packages: npm installed one before the first sample; beside it the p50 of a warm create in the same run. Docker: `docker run --rm` of `true` on the same root filesystem. Floor: cold, `crun run` (or ' +
    '`runc run`) of `true` on a prepared bundle; warm, a bare `posix_spawn` of `true` through a unix socket.',

  async measure({ docker, floor, quick }) {
    const size = { n: quick ? 10 : 100, warmup: quick ? 20 : WARMUP }
    const dockerRun =
      docker && (await sample('docker run', quick ? 3 : 20, 1, () => docker.run(['true']))).summary()
    const bareRunc = await floor.container(quick ? 5 : 30)
    const bareSpawn = await floor.spawn(quick ? 100 : 1000)
    const rows: Row[] = []
    {
      await using server = await BenchServer.start(COLD)
      const cold = await measure('create, cold', size, () => server.create())
      rows.push(
        { id: 'create-cold', figure: 'create, cold', unit: 'ms', islet: cold.made.summary() },
        {
          id: 'create-cold-first',
          figure: 'create, cold, to first result',
          unit: 'ms',
          islet: cold.first.summary(),
          docker: dockerRun,
          floor: bareRunc,
          note: `\`docker run\`; \`${floor.bare.runtime} run\``,
        },
        { id: 'delete', figure: 'delete', unit: 'ms', islet: cold.removed.summary() },
      )
    }
    await using server = await BenchServer.start(warm(POOL))
    const warmed = await measure(
      'create, warm',
      size,
      () => server.create(),
      () => server.filled(),
    )
    rows.push(
      { id: 'create-warm', figure: 'create, warm', unit: 'ms', islet: warmed.made.summary() },
      {
        id: 'create-warm-first',
        figure: 'create, warm, to first result',
        unit: 'ms',
        islet: warmed.first.summary(),
        docker: dockerRun,
        floor: bareSpawn,
        note: '`docker run`; `posix_spawn`',
      },
    )
    let memoryMi = 512
    const unlike = await measure(
      'create, warm, not like those before',
      size,
      () => server.create({ resources: { memory: `${memoryMi++}Mi` } }),
      () => server.filled(),
    )
    rows.push({
      id: 'create-unlike-first',
      figure: 'create, warm, not like those before, to first result',
      unit: 'ms',
      islet: unlike.first.summary(),
      docker: dockerRun,
      floor: bareSpawn,
      note: '`docker run`; `posix_spawn`',
    })
    const source = await server.create()
    await ran(source, 'echo saved > note')
    const snapshot = await source.createSnapshot()
    await source.kill()
    const fromSnapshot = await measure(
      'create from a snapshot, warm',
      { ...size, n: quick ? 5 : 50 },
      () => server.create({ snapshot: snapshot.id }),
      () => server.filled(),
    )
    await server.islet.snapshots.delete(snapshot.id)
    await (await server.create(PACKAGES)).kill()
    const withPackages = await measure(
      'create with packages, warm',
      size,
      () => server.create(PACKAGES),
      () => server.filled(),
    )
    const first = withPackages.first.summary()
    rows.push(
      {
        id: 'create-packages-first',
        figure: 'create with packages installed before, warm, to first result',
        unit: 'ms',
        islet: first,
        docker: dockerRun,
        floor: bareSpawn,
        note: '`docker run`; `posix_spawn`',
      },
      {
        id: 'create-packages-ratio',
        figure: 'the same, beside a create without packages',
        unit: 'times',
        islet: first.p50 / warmed.first.summary().p50,
      },
    )
    rows.push({
      id: 'create-snapshot-first',
      figure: 'create from a snapshot, warm, to first result',
      unit: 'ms',
      islet: fromSnapshot.first.summary(),
      docker: dockerRun,
      floor: bareSpawn,
      note: '`docker run`; `posix_spawn`',
    })
    return rows
  },
}

/** A failed sample is counted once, in `first`, whichever step failed. */
async function measure(
  figure: string,
  { n, warmup }: { n: number; warmup: number },
  create: () => Promise<Sandbox>,
  before: () => Promise<void> = async () => {},
): Promise<{ made: Tally; first: Tally; removed: Tally }> {
  const [made, first, removed] = [new Tally(figure), new Tally(figure), new Tally(figure)]
  for (let index = 0; index < warmup + n; index++) {
    await first.attempt(async () => {
      await before()
      const started = performance.now()
      const sandbox = await create()
      const created = performance.now()
      await runTrue(sandbox)
      const ended = performance.now()
      await sandbox.kill()
      if (index < warmup) return
      made.times.push(created - started)
      first.times.push(ended - started)
      removed.times.push(performance.now() - ended)
    })
  }
  return { made, first, removed }
}
