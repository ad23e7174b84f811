// Output as it comes: how soon the first byte of a new command is there, and how soon a client is attached to one that runs.
import type { Sandbox } from 'islet'
import type { Figure } from '../figure.ts'
import { round, summarise } from '../measure.ts'

/** Kept output that an attaching client is given. */
const KEPT_BYTES = 64 * 1024

export const streamFigure: Figure = async ({ create, docker, quick }) => {
  const sandbox = await create()
  const n = quick ? 50 : 500
  const first = await collect(n, () => firstByte(sandbox))
  const { id } = await sandbox.exec.spawn(`head -c ${KEPT_BYTES} /dev/zero; sleep 3600`)
  while ((await sandbox.exec.get(id)).outputBytes < KEPT_BYTES);
  const attached = await collect(n, () => attach(sandbox, id))
  await sandbox.kill()
  const dockerFirst =
    docker &&
    (await docker.withContainer((_, stream) => collect(quick ? 5 : 50, () => stream(['echo', 'first']))))
  return [
    {
      figure: 'first byte of streamed output',
      islet: summarise(first),
      docker: dockerFirst && summarise(dockerFirst),
      unit: 'ms',
      note: 'docker exec',
    },
    {
      figure: `attach, with a replay of ${round(KEPT_BYTES / 1024)} KiB`,
      islet: summarise(attached),
      unit: 'ms',
    },
  ]
}

/** From the call that starts a command to its first output in the caller's hand. */
async function firstByte(sandbox: Sandbox): Promise<number> {
  const started = performance.now()
  let ms: number | undefined
  const session = await sandbox.exec.start(['echo', 'first'], {
    stdin: false,
    onStdout: () => {
      ms ??= performance.now() - started
    },
  })
  await session.done
  if (ms === undefined) throw new Error('echo printed nothing')
  return ms
}

/** From the call to the mark that says: all that was kept is there. */
async function attach(sandbox: Sandbox, processId: string): Promise<number> {
  const started = performance.now()
  const { promise, resolve } = Promise.withResolvers<number>()
  const onScrollbackEnd = () => resolve(performance.now() - started)
  const session = await sandbox.exec.attach(processId, { onScrollbackEnd })
  const ms = await promise
  session.close()
  return ms
}

/** What each of n operations says it took, after some that do not count. */
async function collect(n: number, operation: () => Promise<number>): Promise<number[]> {
  for (let index = 0; index < Math.ceil(n / 10); index++) await operation()
  const times: number[] = []
  for (let index = 0; index < n; index++) times.push(await operation())
  return times
}
