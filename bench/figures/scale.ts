// The time of calls with 10, 50, 100 and 500 idle sandboxes on the machine, and with 50 busy ones added. None should grow.
import type { Sandbox } from 'islet'
import type { Figure, Row } from '../figure.ts'
import { round, sample, Tally } from '../measure.ts'
import { usedBytes } from '../memory.ts'
import { BenchServer, runTrue, warm } from '../server.ts'
import { MIB } from '../sizes.ts'
import { grow } from './memory.ts'

const COUNTS = [10, 50, 100, 500]
const QUICK_COUNTS = [10, 50]
const BUSY = 50
const POOL = 8
/** Not larger than the smallest count, so that every page has the same length. */
const PAGE = 10
/** Computes and prints a little ten times a second, without a new process each time. */
const LOOP = `
import time
while True:
    print(sum(i * i for i in range(5000)), flush=True)
    time.sleep(0.1)
`

/** With fewer sandboxes, other changes in the machine's memory would dominate. */
const MEMORY_FROM = 200

export const scaleFigure: Figure = {
  method:
    'Sandboxes are made 8 at a time until that many are alive; each has run `true` once and is idle. Then, with 8 cells waiting: create and ' +
    'first result 30 times (each sandbox is removed again), `true` 300 times, a page of 10 of the list and one record 200 times each, one ' +
    'after another. Memory is what the machine uses more than before the first, divided by the count, from 200 on: of fewer, what else ' +
    'the machine does weighs more than they do. Busy: 50 more sandboxes, each of which computes a little and prints a line ten times a second. Floor: a bare ' +
    '`posix_spawn`, a bare HTTP request.',

  async measure({ floor, quick }) {
    const rows: Row[] = []
    const tally = new Tally('sandboxes of scale')
    const idle: Sandbox[] = []
    await using server = await BenchServer.start({ ...warm(POOL), ISLET_MAX_SANDBOXES: '2000' })
    const samples = quick ? { create: 5, exec: 50, read: 50 } : { create: 30, exec: 300, read: 200 }
    const bareSpawn = await floor.spawn(samples.exec)
    const bareRequest = await floor.request(samples.read)
    // The first sandboxes load what all share.
    await grow(tally, POOL, async () => {
      const sandbox = await server.create()
      await runTrue(sandbox)
      await sandbox.kill()
    })
    await server.filled()
    const before = await usedBytes(server.owners)
    const add = async () => {
      const sandbox = await server.create()
      idle.push(sandbox)
      await runTrue(sandbox)
    }
    const measureAt = async (id: string, at: string) => {
      await server.filled()
      const made = new Tally(`create ${at}`)
      const first = await creates(server, `create ${at}`, samples.create, made)
      const exec = await sample(`exec ${at}`, samples.exec, 20, () => runTrue(idle[0]!))
      const list = await sample(`list ${at}`, samples.read, 10, () =>
        server.islet.sandboxes.list({ limit: PAGE }),
      )
      const get = await sample(`get ${at}`, samples.read, 10, () => server.islet.sandboxes.get(idle[0]!.id))
      const add = (name: string, figure: string, tally: Tally, floor?: Row['floor']) =>
        rows.push({
          id: `scale-${id}-${name}`,
          figure: `${at}: ${figure}`,
          unit: 'ms',
          islet: tally.summary(),
          floor,
        })
      add('create', 'create, warm', made)
      add('first', 'create, warm, to first result', first, bareSpawn)
      add('exec', 'exec', exec, bareSpawn)
      add('list', `list, a page of ${PAGE}`, list, bareRequest)
      add('get', 'get', get, bareRequest)
    }
    for (const count of quick ? QUICK_COUNTS : COUNTS) {
      await grow(tally, count - idle.length, add)
      const at = `${count} idle`
      await server.filled()
      const each = ((await usedBytes(server.owners)) - before) / count / MIB
      await measureAt(String(count), at)
      const memory = { id: `scale-${count}-memory`, figure: `${at}: all-in memory each`, islet: round(each) }
      if (count >= MEMORY_FROM) rows.push({ ...memory, unit: 'MiB' })
      rows.push({
        id: `scale-${count}-server`,
        figure: `${at}: server memory`,
        unit: 'MiB',
        islet: round(server.rssBytes / MIB),
      })
    }
    const last = idle.length
    await grow(tally, BUSY, async () => {
      const sandbox = await server.create()
      await sandbox.exec.spawn(['python3', '-c', LOOP])
    })
    await measureAt('busy', `${last} idle and ${BUSY} busy`)
    return rows
  },
}

/** The first create does not count: measuring memory dropped the caches, so it reads from the disk. */
async function creates(server: BenchServer, figure: string, n: number, made: Tally): Promise<Tally> {
  const first = new Tally(figure)
  for (let index = -1; index < n; index++) {
    await first.attempt(async () => {
      await server.filled()
      const started = performance.now()
      const sandbox = await server.create()
      const created = performance.now()
      await runTrue(sandbox)
      const ended = performance.now()
      await sandbox.kill()
      if (index < 0) return
      made.times.push(created - started)
      first.times.push(ended - started)
    })
  }
  return first
}
