// Clients that do random things to their sandboxes at once, on a server that is killed now and then, against a simple model of
// what every sandbox, checkpoint and snapshot must hold. ISLET_TEST_MINUTES=n makes it longer, ISLET_TEST_SEED=n repeats a run.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { TestServer } from '../support/server.ts'
import { withServer } from './crash.ts'
import { audit, layersOf } from './state-audit.ts'
import { Client, type World } from './state-model.ts'

const CLIENTS = 8
const { ISLET_TEST_MINUTES, ISLET_TEST_SEED } = process.env
const DURATION_MS = ISLET_TEST_MINUTES ? Number(ISLET_TEST_MINUTES) * 60_000 : 12_000
const SEED = ISLET_TEST_SEED ? Number(ISLET_TEST_SEED) : Math.floor(Math.random() * 2 ** 31)
/** The server lives at least so long, and up to twice that. */
const LIFE_MS = 3000
const LEAST_STEPS = 50

test(`${CLIENTS} clients and a server that crashes: every sandbox and every saved state is as the model says (seed ${SEED})`, async () => {
  await withServer(
    async (server) => {
      const world = new CrashingWorld(server, randomFrom(SEED))
      const clients = Array.from(
        { length: CLIENTS },
        (_, index) => new Client(world, `c${index}`, randomFrom(SEED + index + 1)),
      )
      const deadline = Date.now() + DURATION_MS
      let steps = 0
      const crashing = world.crashUntil(deadline)
      world.ended = crashing.catch(() => {})
      const all = (work: (client: Client) => Promise<void>) =>
        Promise.all(clients.map(work)).catch(world.abort)
      await all(async (client) => {
        while (Date.now() < deadline || steps < LEAST_STEPS) {
          world.signal.throwIfAborted()
          await client.step()
          steps++
        }
      })
      const crashes = await crashing
      await all((client) => client.finish())
      await audit(server)
      await all((client) => client.clear())
      await audit(server)
      assert.deepEqual(layersOf(server), [])
      console.log(`${steps} steps, ${crashes} crashes`)
    },
    { env: { ISLET_LOG_LEVEL: 'warn' } },
  )
})

class CrashingWorld implements World {
  readonly server: TestServer
  readonly #abort = new AbortController()
  readonly signal = this.#abort.signal
  ended: Promise<unknown> = Promise.resolve()
  readonly #random: () => number
  #up = Promise.resolve()

  constructor(server: TestServer, random: () => number) {
    this.server = server
    this.#random = random
  }

  /** For the first failure: the others end. */
  abort = async (error: unknown): Promise<never> => {
    this.#abort.abort()
    // It would start a server that nobody stops.
    await this.ended
    throw error
  }

  async up(): Promise<void> {
    // The connection of whoever asks may have broken before the kill was noticed here.
    await setTimeout(5)
    await this.#up
  }

  /** Answers with how often. */
  async crashUntil(deadline: number): Promise<number> {
    for (let crashes = 0; ; crashes++) {
      await setTimeout(LIFE_MS * (1 + this.#random()))
      if (Date.now() > deadline || this.signal.aborted) return crashes
      this.#up = this.server.kill().then(() => this.server.start())
      await this.#up
    }
  }
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
