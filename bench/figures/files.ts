// 256 MB up and down through the API, and the growth of the server's memory during it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Docker } from '../docker.ts'
import type { Figure } from '../figure.ts'
import { round, type Samples, sample, Tally } from '../measure.ts'
import { BenchServer } from '../server.ts'
import { MB, TRANSFER_BYTES } from '../sizes.ts'
import { type Order, TransferClient } from '../transfer.ts'

const WARMUPS = 3

export const filesFigure: Figure = {
  method:
    '256 MB (decimal) streamed up to a new file and down again, and the file removed, five times by the SDK in a process of its own, after three of each that do not count, then up ' +
    "over a file that is there, which the disk must also put in its place; memory is the server's " +
    'resident set, looked at every 20 ms. Docker: `docker cp` of a file of that size. Floor: `cp` of such a file on the same disk.',

  async measure({ docker, floor, quick }) {
    const rounds = quick ? 2 : 5
    await using server = await BenchServer.start()
    const sandbox = await server.create()
    await server.filled()
    await using client = new TransferClient({ url: server.url, apiKey: server.key, id: sandbox.id })
    const [up, over, down] = [new Tally('file up'), new Tally('file up, over'), new Tally('file down')]
    const time = (tally: Tally, verb: Order['verb'], path: string) =>
      tally.attempt(async () => void tally.times.push(await client.time(verb, path)))
    for (let warmup = 0; warmup < WARMUPS; warmup++) {
      await up.attempt(() => client.time('write', '/tmp/large'))
      await down.attempt(() => client.time('read', '/tmp/large'))
    }
    const before = server.rssBytes
    let peak = before
    const watch = setInterval(() => {
      peak = Math.max(peak, server.rssBytes)
    }, 20).unref()
    for (let round = 0; round < rounds; round++) {
      await time(up, 'write', `/tmp/large-${round}`)
      await time(down, 'read', `/tmp/large-${round}`)
      // Otherwise written pages fill the sandbox's memory, and the next write waits for the disk.
      await sandbox.files.remove(`/tmp/large-${round}`)
    }
    for (let round = 0; round < rounds; round++) await time(over, 'write', '/tmp/large')
    clearInterval(watch)
    const copied = docker && (await dockerCopies(docker, quick ? 1 : 3))
    const bare = rate(await sample('cp', rounds, 0, await floor.copier()))
    const note = '`docker cp`; `cp`'
    return [
      {
        id: 'file-up',
        figure: 'file up, 256 MB',
        unit: 'MB/s',
        islet: rate(up),
        docker: copied?.up,
        floor: bare,
        note,
      },
      {
        id: 'file-over',
        figure: 'file up, 256 MB, over another',
        unit: 'MB/s',
        islet: rate(over),
        floor: bare,
        note: '`cp`',
      },
      {
        id: 'file-down',
        figure: 'file down, 256 MB',
        unit: 'MB/s',
        islet: rate(down),
        docker: copied?.down,
        floor: bare,
        note,
      },
      {
        id: 'file-memory',
        figure: 'server memory while transferring: growth',
        unit: 'MB',
        islet: round((peak - before) / MB),
        note: `from ${round(before / MB)} MB`,
      },
    ]
  },
}

/** MB/s at the percentiles of the times: p99 is the slow end, as in other rows. */
function rate(tally: Tally): Samples {
  const { n, failed, ...times } = tally.summary()
  const at = (ms: number) => (ms > 0 ? round(TRANSFER_BYTES / MB / (ms / 1000)) : 0)
  const { p50, p95, p99, min, max } = times
  return { n, failed, p50: at(p50), p95: at(p95), p99: at(p99), min: at(max), max: at(min) }
}

async function dockerCopies(docker: Docker, rounds: number) {
  const directory = await mkdtemp(join(tmpdir(), 'islet-docker-files-'))
  const file = join(directory, 'large')
  await writeFile(file, Buffer.alloc(TRANSFER_BYTES, 7))
  const container = await docker.start()
  const up = await sample('docker cp, up', rounds, 0, () => docker.copy(file, `${container}:/tmp/large`))
  const down = await sample('docker cp, down', rounds, 0, () => docker.copy(`${container}:/tmp/large`, file))
  await docker.remove([container])
  await rm(directory, { recursive: true })
  return { up: rate(up), down: rate(down) }
}
