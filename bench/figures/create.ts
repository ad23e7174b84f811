// A new sandbox to the result of its first command, one after another; nothing is kept warm. Removal is not in the clock.
import type { Figure } from '../figure.ts'
import { sample, summarise } from '../measure.ts'

const WARMUP = 3

export const createFigure: Figure = async ({ create, docker, quick }) => {
  const made: number[] = []
  const total: number[] = []
  const removed: number[] = []
  for (let index = 0; index < WARMUP + (quick ? 10 : 100); index++) {
    const started = performance.now()
    const sandbox = await create()
    const created = performance.now()
    const { exitCode } = await sandbox.exec.run(['true'])
    const ended = performance.now()
    if (exitCode !== 0) throw new Error('true failed')
    await sandbox.kill()
    made.push(created - started)
    total.push(ended - started)
    removed.push(performance.now() - ended)
  }
  const figures = [made, total, removed].map((times) => summarise(times.slice(WARMUP)))
  const dockerRun = docker && summarise(await sample(quick ? 3 : 20, 1, () => docker.run(['true'])))
  return [
    { figure: 'create, cold', islet: figures[0]!, unit: 'ms' },
    {
      figure: 'create, cold, to first result',
      islet: figures[1]!,
      docker: dockerRun,
      unit: 'ms',
      note: 'docker run',
    },
    { figure: 'delete', islet: figures[2]!, unit: 'ms' },
  ]
}
