// A sandbox with 20,000 changed files of 50 MB in all: how long it is frozen for a checkpoint, and how long a checkpoint, a fork, a
// restore and a wake take, each to the result of a first command. With a pool, without one, and where layers are copied.
import { setTimeout } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import type { Docker } from '../docker.ts'
import type { Figure, Row } from '../figure.ts'
import { Tally } from '../measure.ts'
import { BenchServer, COLD, ran, runTrue, warm } from '../server.ts'
import { CHANGE } from '../sizes.ts'

const MANY = 10
const SETTLE_MS = 200
/** For ten forks at once, and one for a restore. */
const POOL = 12

const NAMES: Record<string, string> = {
  checkpoint: 'checkpoint',
  'checkpoint-frozen': 'checkpoint, frozen',
  'fork-first': 'fork, to first result',
  'fork-many-first': `fork x${MANY}, to all first results`,
  'fork-fresh-first': 'fork, all just written, to first result',
  'fork-fresh-frozen': 'fork, all just written, frozen',
  restore: 'restore, to first result',
  hibernate: 'hibernate',
  wake: 'wake, to first result',
}

export const stateFigure: Figure = {
  method:
    'A sandbox with 20,000 files of 50 MB in all, every one written again before each checkpoint and not yet on disk; `frozen` is how long ' +
    'the sandbox was frozen, as the server reports it. A fork is to the result of `true` in it, of the same sandbox after 100 more of the files were ' +
    'changed; ten at once the same. `All just written`: the fork comes right after every file was written again, so all 50 MB go to the disk ' +
    'first. Restore in place and wake are to the result of `true` as well. Warm: 12 cells wait before each. Cold: the pool is off. Copying: no ' +
    'pool, `ISLET_STORAGE=copy` on a plain directory. Docker: `docker commit` of a container with the same change, for a fork with a ' +
    '`docker run` of it; the container is frozen all that time. Floor: `cp -a` of such a tree on the same disk.',

  async measure({ docker, floor, quick }) {
    const rounds = quick ? 2 : 8
    const bare = await floor.copyTree(quick ? 1 : 3)
    const theirs = docker && (await dockerState(docker, quick ? 1 : 2))
    const rows: Row[] = []
    for (const [kind, settings, count] of [
      ['warm', warm(POOL), rounds],
      ['cold', COLD, rounds],
      ['copying', { ...COLD, ISLET_STORAGE: 'copy' }, quick ? 1 : 2],
    ] as const) {
      await using server = await BenchServer.start(settings)
      const tallies = await measure(server, kind, count)
      for (const [id, tally] of Object.entries(tallies)) {
        const beside = BESIDE[id]
        rows.push({
          id: idOf(id, kind),
          figure: `${NAMES[id]}, ${kind}`,
          unit: 'ms',
          islet: tally.summary(),
          docker: beside && theirs?.[beside].summary(),
          floor: beside && bare,
          note: beside && '`docker commit`; `cp -a`',
        })
      }
    }
    return rows
  },
}

/** The corresponding operation of Docker. */
const BESIDE: Record<string, 'commit' | 'fork'> = {
  checkpoint: 'commit',
  'checkpoint-frozen': 'commit',
  'fork-first': 'fork',
  'fork-fresh-first': 'fork',
  'fork-fresh-frozen': 'commit',
}

/** A checkpoint does not use the pool, so its warm row has the plain id; all other rows name their kind. */
function idOf(id: string, kind: string): string {
  if (id.startsWith('checkpoint')) return kind === 'warm' ? id : `${id}-${kind}`
  return id.startsWith('fork') ? id.replace('fork', `fork-${kind}`) : `${id}-${kind}`
}

async function measure(server: BenchServer, kind: string, rounds: number): Promise<Record<string, Tally>> {
  const tallies = Object.fromEntries(Object.keys(NAMES).map((id) => [id, new Tally(`${NAMES[id]}, ${kind}`)]))
  const of = (id: string) => tallies[id]!
  const sandbox = await server.create()
  for (let round = 0; round < rounds; round++) {
    await ran(sandbox, CHANGE)
    await server.filled()
    const checkpoint = await of('checkpoint').time(() => sandbox.createCheckpoint(`round ${round}`))
    if (checkpoint) of('checkpoint-frozen').times.push(checkpoint.frozenMs)
    for (const [id, count] of [
      ['fork-first', 1],
      ['fork-many-first', MANY],
    ] as const) {
      await ran(sandbox, 'cd tree/0 && for i in $(seq 100); do date > $i; done')
      await setTimeout(SETTLE_MS)
      await server.filled()
      await removed(of(id), await of(id).time(() => forked(sandbox, count)))
    }
    await ran(sandbox, CHANGE)
    await server.filled()
    const forks = await of('fork-fresh-first').time(() => forked(sandbox, 1))
    if (forks) of('fork-fresh-frozen').times.push(forks.frozenMs)
    await removed(of('fork-fresh-first'), forks)
    await server.filled()
    if (checkpoint) {
      await of('restore').time(async () => {
        await sandbox.restoreCheckpoint(checkpoint.id)
        await runTrue(sandbox)
      })
    }
    await of('hibernate').time(() => sandbox.hibernate())
    await server.filled()
    await of('wake').time(() => runTrue(sandbox))
  }
  return tallies
}

interface Forks {
  children: Sandbox[]
  frozenMs: number
}

async function forked(source: Sandbox, count: number): Promise<Forks> {
  const forks = await source.fork({ count })
  const children = forks.map((fork) => {
    if (!fork.ok) throw fork.error
    return fork.sandbox
  })
  await Promise.all(children.map(runTrue))
  return { children, frozenMs: forks.frozenMs }
}

async function removed(tally: Tally, forks: Forks | undefined): Promise<void> {
  await Promise.all((forks?.children ?? []).map((child) => tally.attempt(() => child.kill())))
}

async function dockerState(docker: Docker, rounds: number): Promise<{ commit: Tally; fork: Tally }> {
  const [commit, fork] = [new Tally('docker commit'), new Tally('docker commit and run')]
  const container = await docker.start()
  for (let round = 0; round < rounds; round++) {
    await docker.exec(container, ['sh', '-c', `mkdir -p /workspace && cd /workspace && ${CHANGE}`])
    const image = await fork.time(async () => {
      const image = await commit.time(() => docker.commit(container))
      await docker.runImage(image!, ['true'])
      return image!
    })
    if (image) await docker.removeImage(image)
  }
  await docker.remove([container])
  return { commit, fork }
}
