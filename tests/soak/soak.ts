// A soak: clients that do random things to their sandboxes at once, on a server that is harmed in every way, against a model of what every
// sandbox, checkpoint and snapshot must hold. One divergence ends it.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { audit, layersOf } from '../faults/state-audit.ts'
import { nothingLeft } from '../support/held.ts'
import { slotOf } from '../support/leftovers.ts'
import { reboot } from '../support/reboot.ts'
import { TestServer } from '../support/server.ts'
import { Canary } from './canary.ts'
import { Client } from './client.ts'
import { Clock } from './clock.ts'
import { Disk } from './disk.ts'
import { Mishaps } from './mishaps.ts'
import { Random } from './random.ts'
import { clear, finish, step } from './steps.ts'
import { Tally } from './tally.ts'
import { World } from './world.ts'

const CLIENTS = 6
const LEAST_STEPS = 50
const LOG_TAIL = 6000
const SHIFTED_CLOCK = fileURLToPath(new URL('shifted-clock.ts', import.meta.url))

export interface SoakOptions {
  durationMs: number
  seed: number
  isolation: 'namespace' | 'gvisor'
  /** The disk is full now and then. */
  diskFull: boolean
}

export interface Soaked {
  options: SoakOptions
  tally: Tally
  elapsedMs: number
}

export async function soak(options: SoakOptions): Promise<Soaked> {
  const began = Date.now()
  const scratch = mkdtempSync(join(tmpdir(), 'islet-soak-clock-'))
  const clock = new Clock(join(scratch, 'offset'))
  const disk = options.diskFull ? new Disk() : undefined
  const env: Record<string, string> = {
    ISLET_LOG_LEVEL: 'warn',
    ISLET_ISOLATION: options.isolation,
    ISLET_TEST_CLOCK: join(scratch, 'offset'),
    NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`,
  }
  const server = new TestServer({ env, dataDir: disk && mkdtempSync(join(disk.path, 'islet-test-')) })
  const world = new World({ server, clock, disk, tally: new Tally() })
  try {
    await server.start()
    const slot = slotOf(server.dataDir)
    await work(world, env, options)
    await server[Symbol.asyncDispose]()
    assert.deepEqual(nothingLeft(server.dataDir, slot), [], 'left behind on the machine')
    assert.ok(!existsSync(server.dataDir), `${server.dataDir} is gone`)
    disk?.close()
    return { options, tally: world.tally, elapsedMs: Date.now() - began }
  } catch (error) {
    throw await diverged(world, options, error)
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

async function work(world: World, env: Record<string, string>, options: SoakOptions): Promise<void> {
  const random = new Random(options.seed)
  const { server, tally } = world
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) => new Client(world, `c${index}`, new Random(options.seed + index + 1)),
  )
  const all = (doing: (client: Client) => Promise<void>) =>
    clients.map((client) => client.explained(doing(client)))
  const canary = new Canary(world)
  await canary.start()
  const deadline = Date.now() + options.durationMs
  const mishaps = new Mishaps({ world, canary, random, env, deadline })
  await together(world, [
    mishaps.run(),
    ...all(async (client) => {
      while (Date.now() < deadline || tally.steps < LEAST_STEPS) {
        world.signal.throwIfAborted()
        await step(client)
        tally.steps++
      }
    }),
  ])
  // From now on the server holds only the resources that its sandboxes need.
  env.ISLET_WARM_MAX = '0'
  world.isDown()
  await server.stop()
  await mishaps.start()
  await together(world, all(finish))
  await canary.finish()
  await audit(server)
  await together(world, all(clear))
  await audit(server)
  assert.deepEqual(layersOf(server), [])
}

/** Waits for all of them, also when one fails: nothing is going on afterwards. */
async function together(world: World, works: Promise<void>[]): Promise<void> {
  await Promise.allSettled(works.map((work) => work.catch(world.abort)))
  if (world.signal.aborted) throw world.failure
}

/** Ends all that runs; the data directory is kept. */
async function diverged(world: World, { seed }: SoakOptions, cause: unknown): Promise<Error> {
  const { server, disk } = world
  const log = server.output.slice(-LOG_TAIL)
  const found = await audit(server).then(
    () => 'nothing',
    (error) => String(error.message),
  )
  await server.kill().catch(() => {})
  await reboot(server)
  disk?.close({ keep: true })
  const where = disk
    ? `${server.dataDir.slice(disk.path.length + 1)} on the filesystem ${disk.image}`
    : server.dataDir
  const text = `Seed ${seed}. The data directory is kept: ${where}\nThe audit found: ${found}\nThe end of the server's log:\n${log}`
  return new Error(text, { cause })
}
