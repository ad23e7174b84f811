// One attack on a server, and its effect on neighbours.
//
// While the attack runs, a sandbox that has nothing to do with it is asked to run a command again and again, and the memory of the
// server is watched. Every attack asserts that the neighbour always answered and that the server grew by less than MAX_GROWTH_BYTES.
// How long the neighbour waited is a figure, not an assertion: `npm run hostile` writes it to docs/reliability.md.
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync } from 'node:fs'
import { after, before, describe } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { probeOci } from '@islet/server/probe'
import type { Sandbox } from 'islet'
import { TestServer } from '../support/server.ts'
import { Suite } from '../support/suite.ts'

export type Isolation = 'namespace' | 'gvisor'

/** One line of the campaign's table. */
export interface Row {
  area: string
  attack: string
  isolation: Isolation
  /** How often it was tried in this run. */
  tries: number
  neighbourCalls: number
  neighbourP50Ms: number
  neighbourP99Ms: number
  growthBytes: number
}

const MIB = 1024 ** 2
export const MAX_GROWTH_BYTES = 64 * MIB
/** A command of the neighbour that takes longer has failed: its server hangs. */
const HANGS_MS = 30_000
/** The campaign wants exact figures; the suite wants to know whether the neighbour answers. */
const ASK_EVERY_MS = process.env.ISLET_TEST_CAMPAIGN ? 20 : 100
/** Memory that was used goes back within this time. */
const SETTLE_MS = 15_000

/** For attacks on code of the server that is the same for every isolation. The campaign tries both. */
export const SAME_IN_BOTH: readonly Isolation[] = process.env.ISLET_TEST_CAMPAIGN
  ? ['namespace', 'gvisor']
  : ['namespace']

export interface Target {
  suite: Suite
  isolation: Isolation
  /** Runs `work` beside a neighbour. `tries`: how often it does what its name says; it may know better when it is done. */
  attack(name: string, tries: number, work: () => Promise<unknown>): Promise<void>
}

export interface TargetOptions {
  /** For the table: what kind of attacks these are. */
  area: string
  env?: Record<string, string>
  /** Default: both. A machine without runsc skips `gvisor` and says so. */
  isolations?: readonly Isolation[]
}

/** `body` registers tests that use the target, once for each isolation. Each has a server of its own, while its tests run. */
export async function eachIsolation(options: TargetOptions, body: (target: Target) => void): Promise<void> {
  const lacking = await lackingOf()
  for (const isolation of options.isolations ?? (['namespace', 'gvisor'] as const)) {
    const skip = lacking[isolation] === '' ? false : lacking[isolation]
    describe(`${options.area}, isolation ${isolation}`, { skip }, () => {
      let opened: { suite: Suite; neighbour: Sandbox } | undefined
      before(async () => {
        const env = { ...options.env, ISLET_ISOLATION: isolation }
        const suite = new Suite(await TestServer.start({ env }))
        opened = { suite, neighbour: await suite.create() }
      })
      after(() => opened?.suite.close())
      body({
        isolation,
        /** For tests: there is none while they are registered. */
        get suite() {
          return opened!.suite
        },
        attack: (name, tries, work) => run({ ...opened!, options, isolation, name, tries, work }),
      })
    })
  }
}

/** The server's own memory: pages of files do not count. */
export function serverBytes(suite: Suite): number {
  const status = readFileSync(`/proc/${suite.server.pid}/status`, 'utf8')
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)![1]) * 1024
}

interface Run {
  options: TargetOptions
  suite: Suite
  neighbour: Sandbox
  isolation: Isolation
  name: string
  tries: number
  work(): Promise<unknown>
}

async function run({ options, suite, neighbour, isolation, name, tries, work }: Run): Promise<void> {
  await warmUp(neighbour)
  const before = serverBytes(suite)
  const watch = watchNeighbour(suite, neighbour)
  let counted: unknown
  try {
    counted = await work()
  } finally {
    await watch.stop()
  }
  const growthBytes = watch.mostBytes - before
  record({
    area: options.area,
    attack: name,
    isolation,
    tries: typeof counted === 'number' ? counted : tries,
    neighbourCalls: watch.times.length,
    neighbourP50Ms: percentile(watch.times, 50),
    neighbourP99Ms: percentile(watch.times, 99),
    growthBytes,
  })
  assert.deepEqual(watch.failures, [], `${name}: the neighbour always answers`)
  assert.ok(growthBytes < MAX_GROWTH_BYTES, `${name}: the server grew by ${mib(growthBytes)} MiB`)
  for (const deadline = Date.now() + SETTLE_MS; serverBytes(suite) - before >= MAX_GROWTH_BYTES; ) {
    assert.ok(Date.now() < deadline, `${name}: ${mib(serverBytes(suite) - before)} MiB stay behind`)
    await sleep(100)
  }
}

/** A server that has just started grows by what it compiles. */
async function warmUp(neighbour: Sandbox): Promise<void> {
  for (let n = 0; n < 30; n++) await neighbour.exec.run('true')
}

function watchNeighbour(suite: Suite, neighbour: Sandbox) {
  const watched = { times: [] as number[], failures: [] as string[], mostBytes: serverBytes(suite), stop }
  let isOver = false
  const looping = loop()
  async function loop(): Promise<void> {
    for (let n = 0; !isOver; n++) {
      const began = performance.now()
      try {
        const { stdout } = await neighbour.exec.run(`echo ${n}`, { signal: AbortSignal.timeout(HANGS_MS) })
        if (stdout !== `${n}\n`) watched.failures.push(`${JSON.stringify(stdout)} instead of ${n}`)
      } catch (error) {
        watched.failures.push(String(error))
      }
      watched.times.push(performance.now() - began)
      watched.mostBytes = Math.max(watched.mostBytes, serverBytes(suite))
      await sleep(ASK_EVERY_MS)
    }
  }
  async function stop(): Promise<void> {
    isOver = true
    await looping
  }
  return watched
}

function record(row: Row): void {
  const { ISLET_TEST_CAMPAIGN } = process.env
  if (ISLET_TEST_CAMPAIGN) appendFileSync(ISLET_TEST_CAMPAIGN, `${JSON.stringify(row)}\n`)
  console.log(
    `${row.attack} (${row.isolation}): ${row.tries} tries; neighbour p50 ${row.neighbourP50Ms} ms, p99 ${row.neighbourP99Ms} ms; server +${mib(row.growthBytes)} MiB`,
  )
}

function percentile(times: number[], percent: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.round((sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? 0) * 10) / 10
}

const mib = (bytes: number): number => Math.round(bytes / MIB)

/** A sentence for each isolation that this machine cannot have. */
async function lackingOf(): Promise<Record<Isolation, string>> {
  const missing = (await probeOci()).filter(({ ok }) => !ok)
  const details = (isWanted: (finding: (typeof missing)[number]) => boolean) =>
    missing
      .filter(isWanted)
      .map(({ detail }) => detail)
      .join(' ')
  return {
    namespace: details(({ optional }) => !optional),
    gvisor: details(({ optional, name }) => !optional || name === 'runsc'),
  }
}
