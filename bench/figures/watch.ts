// From the moment a file is made inside to its event at the client. The name of each file is the time just before it was made.
import type { Sandbox } from 'islet'
import type { Figure, Row } from '../figure.ts'
import { Tally } from '../measure.ts'
import { BenchServer } from '../server.ts'

const PAUSE_SECONDS = 0.02
const WARMUP = 20

export const watchFigure: Figure = {
  method:
    'A loop in a sandbox makes a file every 20 ms whose name is the time just before it is made; the sample is the time from there to ' +
    "the client's handler, on the same machine's clock. The guest holds events for 10 ms, so that several of one file become one: no " +
    'sample is below that.',

  async measure({ quick }) {
    await using server = await BenchServer.start()
    const sandbox = await server.create()
    await sandbox.runCommand('mkdir watched')
    const rows: Row[] = []
    for (const [id, figure, includeContent] of [
      ['watch', 'watch, file to event', false],
      ['watch-content', 'watch, file to event with its content', true],
    ] as const) {
      const tally = new Tally(figure)
      await tally.attempt(() => watched(sandbox, tally, quick ? 100 : 500, includeContent))
      rows.push({ id, figure, unit: 'ms', islet: tally.summary() })
    }
    return rows
  },
}

async function watched(
  sandbox: Sandbox,
  tally: Tally,
  samples: number,
  includeContent: boolean,
): Promise<void> {
  const watcher = await sandbox.watcher.create('watched', { includeContent })
  const count = WARMUP + samples
  let seen = 0
  const all = Promise.withResolvers<void>()
  watcher.on('error', all.reject)
  watcher.on('overflow', () => all.reject(new Error('events were lost')))
  watcher.on('change', ({ event, path }) => {
    const now = performance.timeOrigin + performance.now()
    if (event !== 'add') return
    if (++seen > WARMUP) tally.times.push(now - Number(path.slice(path.lastIndexOf('/') + 1)) * 1000)
    if (seen === count) all.resolve()
  })
  const loop = `for n in $(seq ${count}); do : > watched/$EPOCHREALTIME; sleep ${PAUSE_SECONDS}; done`
  await Promise.all([all.promise, sandbox.exec.run(['bash', '-c', loop])])
  await watcher.destroy()
}
