// The soak of `npm run soak`, for some seconds. ISLET_TEST_SEED=n repeats a run.
import { test } from 'node:test'
import { soak } from './soak.ts'

const { ISLET_TEST_SEED } = process.env
const SEED = ISLET_TEST_SEED ? Number(ISLET_TEST_SEED) : Math.floor(Math.random() * 2 ** 31)

test(`clients and a server that is killed, whose guests and warden are killed, whose disk is full and whose clock jumps: all is as the model says (seed ${SEED})`, async () => {
  const { tally } = await soak({ durationMs: 10_000, seed: SEED, isolation: 'namespace', diskFull: true })
  console.log(`${tally.steps} steps, ${tally.totalKills} kills, ${tally.clockJumps} clock jumps`)
})
