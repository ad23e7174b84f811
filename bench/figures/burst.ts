// 100 creates at the same moment, each with one command: how long until the last one has its result, and how long each took.
import type { Sandbox } from 'islet'
import type { Figure, Row } from '../figure.ts'
import { curveOf, Tally } from '../measure.ts'
import { BenchServer, COLD, runTrue, USUAL, warm } from '../server.ts'

const COUNT = 100
/** More than the burst takes, so that its last create also finds a cell. */
const POOL = 110
const IDLE_ROUNDS = 3

export const burstFigure: Figure = {
  method:
    '100 creates begin at once, each followed by `true` in its sandbox; `all done` is from the first call to the last result of a ' +
    'round, `each` from the first call to the own result. The sandboxes are removed before the next round; the first round, in ' +
    'which the server compiles itself, does not count. Warm: 110 cells wait ' +
    'before each round. Cold: the pool is off. Idle: a new server with the settings of an ordinary one for each round, which has made one sandbox and has filled its pool by itself. Docker: 100 `docker run --rm` of `true` at once, one round.',

  async measure({ docker, quick }) {
    const rounds = quick ? 1 : 5
    const rows: Row[] = []
    let dockerBurst: Burst | undefined
    if (docker) {
      dockerBurst = newBurst('docker run, 100 at once')
      await burst(dockerBurst, () => docker.run(['true']))
    }
    for (const [id, words, settings] of [
      ['warm', 'pool warm', warm(POOL)],
      ['cold', 'pool off', COLD],
    ] as const) {
      await using server = await BenchServer.start(settings)
      const figure = `100 creates at once, ${words}`
      const [first, result] = [newBurst(figure), newBurst(figure)]
      for (let round = 0; round <= rounds; round++) {
        await server.filled()
        const sandboxes: Sandbox[] = []
        await burst(round === 0 ? first : result, async () => {
          const sandbox = await server.create()
          sandboxes.push(sandbox)
          await runTrue(sandbox)
        })
        await Promise.all(sandboxes.map((sandbox) => result.each.attempt(() => sandbox.kill())))
      }
      result.each.failed += first.each.failed
      rows.push(
        {
          id: `burst-${id}-all`,
          figure: `100 creates at once, ${words}: all done`,
          unit: 'ms',
          // A failed create fails its round. It is counted in this row, because this row has the budget.
          islet: { ...result.all.summary(), failed: result.each.failed },
          docker: dockerBurst?.all.summary(),
          note: '`docker run`',
        },
        {
          id: `burst-${id}-each`,
          figure: `100 creates at once, ${words}: each`,
          unit: 'ms',
          islet: { ...result.each.summary(), failed: 0 },
          docker: dockerBurst?.each.summary(),
          curve: curveOf(result.each.times),
          note: '`docker run`',
        },
      )
    }
    rows.push(await idleRow(quick ? 1 : IDLE_ROUNDS))
    return rows
  },
}

/** A server adapts the size of its pool after a burst, so each round has a new server. */
async function idleRow(rounds: number): Promise<Row> {
  const figure = '100 creates at once on a server that was idle'
  const result = newBurst(figure)
  for (let round = 0; round < rounds; round++) {
    await using server = await BenchServer.start(USUAL)
    await runTrue(await server.create())
    await server.filled()
    await burst(result, async () => runTrue(await server.create()))
  }
  const islet = { ...result.all.summary(), failed: result.each.failed }
  return { id: 'burst-idle-all', figure: `${figure}: all done`, unit: 'ms', islet }
}

interface Burst {
  all: Tally
  each: Tally
}

function newBurst(figure: string): Burst {
  return { all: new Tally(figure), each: new Tally(figure) }
}

async function burst({ all, each }: Burst, operation: () => Promise<unknown>): Promise<void> {
  const started = performance.now()
  await Promise.all(Array.from({ length: COUNT }, () => each.time(operation)))
  all.times.push(performance.now() - started)
}
