// From the moment a file is made inside to its event at the client. The name of each file is the time just before it was made.
import type { Figure } from '../figure.ts'
import { summarise } from '../measure.ts'

const PAUSE_SECONDS = 0.02
const WARMUP = 20

export const watchFigure: Figure = async ({ create, quick }) => {
  const sandbox = await create()
  await sandbox.runCommand('mkdir watched')
  const rows = []
  for (const [figure, includeContent] of [
    ['watch, file to event', false],
    ['watch, file to event with its content', true],
  ] as const) {
    const watcher = await sandbox.watcher.create('watched', { includeContent })
    const count = WARMUP + (quick ? 100 : 1000)
    const times: number[] = []
    const all = Promise.withResolvers<void>()
    watcher.on('error', all.reject)
    watcher.on('overflow', () => all.reject(new Error('events were lost')))
    watcher.on('change', ({ event, path }) => {
      const now = performance.timeOrigin + performance.now()
      if (event === 'add') times.push(now - Number(path.slice(path.lastIndexOf('/') + 1)) * 1000)
      if (times.length === count) all.resolve()
    })
    const loop = `for n in $(seq ${count}); do : > watched/$EPOCHREALTIME; sleep ${PAUSE_SECONDS}; done`
    const made = sandbox.exec.run(['bash', '-c', loop])
    await Promise.all([all.promise, made])
    await watcher.destroy()
    rows.push({ figure, islet: summarise(times.slice(WARMUP)), unit: 'ms' })
  }
  await sandbox.kill()
  return rows
}
