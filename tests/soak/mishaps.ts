// Faults of the server while its clients work: kills of all kinds, a full disk, a clock that jumps.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { readRecords } from '../faults/state-audit.ts'
import { slotOf } from '../support/leftovers.ts'
import type { Canary } from './canary.ts'
import type { Random } from './random.ts'
import type { KillKind } from './tally.ts'
import type { World } from './world.ts'

type Span = readonly [leastMs: number, mostMs: number]

const LIFE: Span = [1500, 5500]
/** Some lives are long, so that a leak can be seen. */
const LONG_LIFE_MS = 60_000
const LONG_LIFE_EVERY_MS = 10 * 60_000
const START_KILLED_AFTER: Span = [0, 1500]
const GUEST_EVERY: Span = [4000, 12_000]
const JUMP_EVERY: Span = [5000, 30_000]
/** Minutes and hours. */
const BACK: Span = [-12 * 60_000, -60_000]
const FORWARD: Span = [30 * 60_000, 5 * 3_600_000]
const FULL_EVERY: Span = [20_000, 50_000]
const FULL_FOR: Span = [2000, 8000]
const SAMPLE_EVERY_MS = 1000
/** The time in which the server notices that its warden is dead. */
const ENDS_BY_MS = 30_000
const FIRST = 1 / 6
const PAGE_BYTES = 4096

export class Mishaps {
  readonly #world: World
  readonly #canary: Canary
  readonly #random: Random
  readonly #env: Record<string, string>
  readonly #deadline: number
  #lastLongLife = Date.now()
  #bornAt = Date.now()
  #isLongLife = false

  /** `env`: of the server, read at every start. */
  constructor(parts: {
    world: World
    canary: Canary
    random: Random
    env: Record<string, string>
    deadline: number
  }) {
    this.#world = parts.world
    this.#canary = parts.canary
    this.#random = parts.random
    this.#env = parts.env
    this.#deadline = parts.deadline
  }

  /** Until the deadline. The server is up then, the disk has room. */
  async run(): Promise<void> {
    await Promise.all([this.#lives(), this.#guests(), this.#jumps(), this.#fulls(), this.#samples()])
  }

  async #lives(): Promise<void> {
    const { server, tally } = this.#world
    while (await this.#waits(this.#nextLife(), server.ended())) {
      if (this.#isLongLife) tally.rssBytes.old.push(rssOf(server.pid))
      const kind = this.#random.weighted<KillKind>([
        [7, 'server'],
        [2, 'server while it starts'],
        [2, 'warden'],
      ])
      this.#world.isDown()
      let killedAt = performance.now()
      if (kind === 'warden') await this.#killWarden()
      else await server.kill()
      this.#chooseWarm()
      tally.killed(kind === 'warden' ? 'warden' : 'server')
      tally.keepErrors(server.output)
      if (kind === 'server while it starts') {
        const starting = server.start().catch(() => {})
        await sleep(this.#random.between(...START_KILLED_AFTER))
        killedAt = performance.now()
        await server.kill()
        tally.killed(kind)
        await starting
      }
      await this.start(killedAt)
    }
  }

  /** Also called from outside to start the server again. */
  async start(killedAt = performance.now()): Promise<void> {
    const { server } = this.#world
    const measured = this.#canary.measureRecovery(killedAt)
    await Promise.all([server.start(), measured])
    this.#bornAt = Date.now()
    this.#world.isUp()
  }

  /** The server ends by itself then. */
  async #killWarden(): Promise<void> {
    const { server } = this.#world
    const warden = childrenOf(server.pid).find((pid) => nameOf(pid) === 'warden')
    if (warden !== undefined) process.kill(warden, 'SIGKILL')
    else await server.kill()
    const late = sleep(ENDS_BY_MS).then(() => {
      throw new Error('The server went on without its warden')
    })
    await Promise.race([server.ended(), late])
  }

  async #guests(): Promise<void> {
    await this.#every(GUEST_EVERY, async () => this.#killGuest())
  }

  #killGuest(): void {
    const { server, sandboxes, tally } = this.#world
    const sandbox = this.#random.pick([...sandboxes])
    const cell = sandbox && readRecords(server.dataDir).sandboxes.find(({ id }) => id === sandbox.id)?.cell
    const pid = cell === undefined ? undefined : firstProcessOf(server.dataDir, cell)
    // Between two cells it has none.
    if (!sandbox || pid === undefined) return
    sandbox.wound = Date.now()
    sandbox.losses++
    try {
      process.kill(pid, 'SIGKILL')
      tally.killed('guest')
    } catch {
      // It has just ended.
    }
  }

  async #jumps(): Promise<void> {
    const { clock, tally } = this.#world
    await this.#every(JUMP_EVERY, async () => {
      clock.jump(this.#random.between(...(this.#random.chance(0.5) ? BACK : FORWARD)))
      tally.clockJumps++
    })
  }

  async #fulls(): Promise<void> {
    const { disk, tally } = this.#world
    if (!disk) return
    await this.#every(FULL_EVERY, async () => {
      disk.fill()
      tally.diskFull++
      await sleep(this.#random.between(...FULL_FOR))
      disk.empty()
    })
  }

  async #samples(): Promise<void> {
    const { server, tally } = this.#world
    while (await this.#waits(SAMPLE_EVERY_MS)) {
      const bytes = rssOf(server.pid)
      if (bytes === 0) continue
      tally.rssBytes.all.push(bytes)
      if (Date.now() - this.#bornAt < 2 * SAMPLE_EVERY_MS) tally.rssBytes.fresh.push(bytes)
    }
  }

  /** The first time comes soon, so that a short run has all of it. */
  async #every(span: Span, work: () => Promise<void>): Promise<void> {
    for (let part = FIRST; await this.#waits(this.#random.between(...span) * part); part = 1) await work()
  }

  #nextLife(): number {
    this.#isLongLife = Date.now() - this.#lastLongLife > LONG_LIFE_EVERY_MS
    if (this.#isLongLife) this.#lastLongLife = Date.now()
    // On a busy machine everything takes longer, also what clients want to get done between two kills.
    const startMs = this.#world.tally.recovery.execMs.at(-1) ?? 0
    return this.#isLongLife ? LONG_LIFE_MS : this.#random.between(...LIFE) + startMs / 2
  }

  /** The next server has cells that wait, or has not. */
  #chooseWarm(): void {
    if (this.#random.chance(0.5)) this.#env.ISLET_WARM_MAX = '0'
    else delete this.#env.ISLET_WARM_MAX
  }

  /** Whether there is more to do after that time. `ends`: what must not happen meanwhile. */
  async #waits(ms: number, ends?: Promise<void>): Promise<boolean> {
    const left = this.#deadline - Date.now()
    const hasEnded = ends?.then(() => true)
    const over = sleep(Math.min(ms, Math.max(left, 0)), false, { signal: this.#world.signal })
    const ended = await Promise.race([over, ...(hasEnded ? [hasEnded] : [])]).catch(() => false)
    if (ended) throw new Error('The server has ended by itself')
    return left > ms && !this.#world.signal.aborted
  }
}

function firstProcessOf(dataDir: string, cell: string): number | undefined {
  const record = readText(`/run/islet/${slotOf(dataDir)}/s/${cell}/cell.json`)
  if (record === '') return undefined
  return (JSON.parse(record) as { process?: { pid: number } }).process?.pid
}

function childrenOf(pid: number): number[] {
  return readText(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

const nameOf = (pid: number): string => readText(`/proc/${pid}/comm`).trim()

function rssOf(pid: number): number {
  return Number(readText(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
