// The tests that every engine must pass, one file per topic in suite/. Only capabilities that an engine declares missing are skipped.
import { after, before, describe } from 'node:test'
import type { EngineCapabilities } from './engine.ts'
import { Gaps } from './suite/gaps.ts'
import type { Harness } from './suite/harness.ts'
import { life } from './suite/life.ts'
import { limits } from './suite/limits.ts'
import { memory } from './suite/memory.ts'
import { network, type OpenNetworked } from './suite/network.ts'
import { wall } from './suite/wall.ts'

export function engineSuite(
  capabilities: EngineCapabilities,
  open: () => Promise<Harness>,
  openNetworked?: OpenNetworked,
): void {
  const gaps = new Gaps(capabilities)
  describe(`engine ${capabilities.engine}, isolation ${capabilities.isolation}`, () => {
    let harness: Harness
    before(async () => {
      harness = await open()
      await harness.engine.start(new Map())
    })
    after(async () => {
      await harness?.close()
      console.log(gaps.table())
    })
    life(() => harness, gaps)
    wall(() => harness, gaps)
    limits(() => harness, gaps)
    memory(() => harness, gaps)
    network(() => harness, gaps, openNetworked)
  })
}
