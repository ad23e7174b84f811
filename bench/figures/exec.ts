// `true` over HTTP on a live sandbox: one caller, then 32 at once.
import type { Figure } from '../figure.ts'
import { round, sample, sampleAtOnce, summarise } from '../measure.ts'

export const execFigure: Figure = async ({ create, docker, quick }) => {
  const sandbox = await create()
  const run = async () => {
    const { exitCode } = await sandbox.exec.run(['true'])
    if (exitCode !== 0) throw new Error('true failed')
  }
  const one = await sample(quick ? 200 : 2000, 100, run)
  const calls = quick ? 500 : 4000
  const started = performance.now()
  const many = await sampleAtOnce(calls, 32, run)
  const perSecond = calls / ((performance.now() - started) / 1000)
  await sandbox.kill()
  const dockerExec =
    docker && (await docker.withContainer((exec) => sample(quick ? 5 : 50, 2, () => exec(['true']))))
  return [
    {
      figure: 'exec',
      islet: summarise(one),
      docker: dockerExec && summarise(dockerExec),
      unit: 'ms',
      note: 'docker exec',
    },
    { figure: 'exec, 32 at once, each', islet: summarise(many), unit: 'ms' },
    { figure: 'exec, 32 at once', islet: round(perSecond), unit: 'per second' },
  ]
}
