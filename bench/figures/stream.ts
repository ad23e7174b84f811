// Output as it comes: how soon the first byte of a new command is there, in one call and by attaching, and how soon a client is attached to one
// that runs.
import type { Sandbox } from 'islet'
import type { Figure } from '../figure.ts'
import { round, Tally } from '../measure.ts'
import { BenchServer } from '../server.ts'

/** The kept output that an attaching client gets. */
const KEPT_BYTES = 64 * 1024

export const streamFigure: Figure = {
  method:
    "From the call of `exec.run` with `echo` to its first output in the caller's handler, 500 times; `docker exec` the same, to the first " +
    'byte from its command line. Start and attach: the same with `exec.start`, whose session outlives its connection. Attach: from the call ' +
    'to the end of the replay of 64 KiB, on a process that runs.',

  async measure({ docker, quick }) {
    await using server = await BenchServer.start()
    const sandbox = await server.create()
    await server.filled()
    const n = quick ? 50 : 500
    const first = await collect('first byte', n, () => firstByte(sandbox))
    const started = await collect('first byte, start and attach', n, () => firstByteAttached(sandbox))
    const { id } = await sandbox.exec.spawn(`head -c ${KEPT_BYTES} /dev/zero; sleep 3600`)
    while ((await sandbox.exec.get(id)).outputBytes < KEPT_BYTES);
    const attached = await collect('attach', n, () => attach(sandbox, id))
    const container = await docker?.start()
    const dockerFirst =
      docker &&
      (await collect('docker exec, first byte', quick ? 5 : 50, () =>
        docker.firstByte(container!, ['echo', 'first']),
      ))
    await docker?.remove([container!])
    return [
      {
        id: 'first-byte',
        figure: 'first byte of streamed output',
        unit: 'ms',
        islet: first.summary(),
        docker: dockerFirst?.summary(),
        note: '`docker exec`',
      },
      {
        id: 'first-byte-attached',
        figure: 'first byte of streamed output, start and attach',
        unit: 'ms',
        islet: started.summary(),
      },
      {
        id: 'attach',
        figure: `attach, with a replay of ${round(KEPT_BYTES / 1024)} KiB`,
        unit: 'ms',
        islet: attached.summary(),
      },
    ]
  },
}

/** From the call that runs a command to its first output. */
async function firstByte(sandbox: Sandbox): Promise<number> {
  const started = performance.now()
  let ms: number | undefined
  await sandbox.exec.run(['echo', 'first'], {
    onStdout: () => {
      ms ??= performance.now() - started
    },
  })
  if (ms === undefined) throw new Error('echo printed nothing')
  return ms
}

/** The same with a session. */
async function firstByteAttached(sandbox: Sandbox): Promise<number> {
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

/** From the call to `replay-end`. */
async function attach(sandbox: Sandbox, processId: string): Promise<number> {
  const started = performance.now()
  const { promise, resolve } = Promise.withResolvers<number>()
  const onScrollbackEnd = () => resolve(performance.now() - started)
  const session = await sandbox.exec.attach(processId, { onScrollbackEnd })
  const ms = await promise
  session.close()
  return ms
}

/** The times that n operations return, after some warm-up runs. */
async function collect(figure: string, n: number, operation: () => Promise<number>): Promise<Tally> {
  const tally = new Tally(figure)
  for (let index = 0; index < Math.ceil(n / 10); index++) await tally.attempt(operation)
  for (let index = 0; index < n; index++) {
    const ms = await tally.attempt(operation)
    if (ms !== undefined) tally.times.push(ms)
  }
  return tally
}
