// A few figures as multiples of the floor, both measured in turns. Such a ratio depends less on the machine and its load than a time does.
import type { Floor } from './floor/floor.ts'
import { Asker } from './floor/http.ts'
import { median, round, Tally } from './measure.ts'
import { BenchServer, COLD, runTrue, warm } from './server.ts'
import { transferContent } from './sizes.ts'

/** How many times the floor something costs. */
export type Ratios = Record<string, number>

/** A larger increase is reported. */
const TOLERANCE = 4 / 3
/** Time for the pairs of one figure; a slow machine measures fewer pairs. */
const LIMIT_MS = 4000

export async function measureRatios(floor: Floor): Promise<Ratios> {
  const ratios: Ratios = {}
  const paired = pair.bind(undefined, ratios)
  const spawn = await floor.spawner.connect()
  const bareSpawn = () => spawn(['true'])
  {
    await using server = await BenchServer.start(COLD)
    await paired(
      'create cold / bare container',
      40,
      () => created(server),
      () => floor.bare.run(),
    )
  }
  await using server = await BenchServer.start(warm(4))
  await paired(
    'create warm / posix_spawn',
    60,
    () => created(server),
    bareSpawn,
    () => server.filled(),
  )
  const sandbox = await server.create()
  await server.filled()
  await paired('exec / posix_spawn', 500, () => runTrue(sandbox), bareSpawn)
  using asker = new Asker(floor.http.url)
  await sandbox.store.set('read', { value: { step: 3 } })
  await paired(
    'store get / HTTP request',
    1000,
    () => sandbox.store.get('read'),
    () => asker.ask(),
  )
  const copy = await floor.copier()
  await paired('file up / cp', 5, () => sandbox.files.write('/tmp/large', transferContent()), copy)
  await paired(
    'file down / cp',
    5,
    async () => {
      for await (const _ of await sandbox.files.readStream('/tmp/large'));
    },
    copy,
  )
  return ratios
}

/** One line for each figure that got worse by more than a third. New figures are not compared. */
export function worsened(now: Ratios, then: Ratios): string[] {
  return Object.entries(now).flatMap(([name, ratio]) => {
    const before = then[name]
    if (before === undefined || ratio <= before * TOLERANCE) return []
    return [`${name}: ${ratio} times, was ${before}: ${Math.round((ratio / before - 1) * 100)} % worse`]
  })
}

/** Until the result of the first command; removal is not timed. */
async function created(server: BenchServer): Promise<() => Promise<unknown>> {
  const sandbox = await server.create()
  await runTrue(sandbox)
  return () => sandbox.kill()
}

/** Adds the ratio of the medians of both, measured in turns. The function that `ours` returns is called untimed. */
async function pair(
  ratios: Ratios,
  name: string,
  n: number,
  ours: () => Promise<unknown>,
  theirs: () => Promise<unknown>,
  before: () => Promise<void> = async () => {},
): Promise<void> {
  const [tally, floor] = [new Tally(name), new Tally(`${name}, floor`)]
  await tally.attempt(async () => cleanUp(await ours()))
  await floor.attempt(theirs)
  const deadline = performance.now() + LIMIT_MS
  for (let index = 0; index < n && (index < 2 || performance.now() < deadline); index++) {
    await before()
    const after = await tally.time(ours)
    await floor.time(theirs)
    await tally.attempt(() => cleanUp(after))
  }
  const ratio = round(median(tally.times) / median(floor.times))
  // There is no ratio if all operations of one side failed.
  if (Number.isFinite(ratio) && ratio > 0) ratios[name] = ratio
}

async function cleanUp(after: unknown): Promise<void> {
  if (typeof after === 'function') await after()
}
