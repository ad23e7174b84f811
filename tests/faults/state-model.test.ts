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
const DURATION_MS = ISLET_TEST_MINUTES ? Number(ISLET_TEST_MINUTES) * 60_000 : 15_000
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
      await allOf(clients, async (client) => {
        while (Date.now() < deadline || steps < LEAST_STEPS) {
          await client.step()
          steps++
        }
      })
      const crashes = await crashing
      await allOf(clients, (client) => client.finish())
      await audit(server)
      await allOf(clients, (client) => client.clear())
      await audit(server)
      assert.deepEqual(layersOf(server), [])
      console.log(`${steps} steps, ${crashes} crashes`)
    },
    { env: { ISLET_LOG_LEVEL: 'warn' } },
  )
})

/** One that fails says what it did last. */
async function allOf(clients: Client[], work: (client: Client) => Promise<void>): Promise<void> {
  const one = async (client: Client) => {
    try {
      await work(client)
    } catch (error) {
      throw new Error(`seed ${SEED}; ${client.done.slice(-40).join('\n')}`, { cause: error })
    }
  }
  await Promise.all(clients.map(one))
}

class CrashingWorld implements World {
  readonly server: TestServer
  readonly #random: () => number
  #up = Promise.resolve()

  constructor(server: TestServer, random: () => number) {
    this.server = server
    this.#random = random
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
      if (Date.now() > deadline) return crashes
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
