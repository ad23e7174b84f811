// One server for all tests of a file, and the proof that nothing of it stays on the machine.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before } from 'node:test'
import type { CreateOptions, Islet, Sandbox } from 'islet'
import { slotOf, tracesOf } from './leftovers.ts'
import { TestServer, type TestServerOptions } from './server.ts'

export class Suite {
  server!: TestServer
  islet!: Islet

  create(options: CreateOptions = {}): Promise<Sandbox> {
    return this.islet.sandboxes.create({ runtime: 'host', ...options })
  }
}

/** Call at the top of a file, after hooks that the server needs. Options may be known only when it starts. */
export function useServer(options: TestServerOptions | (() => Promise<TestServerOptions>) = {}): Suite {
  const suite = new Suite()
  let slot: string | undefined
  before(async () => {
    suite.server = await TestServer.start(typeof options === 'function' ? await options() : options)
    suite.islet = suite.server.islet()
    slot = slotOf(suite.server.dataDir)
  })
  after(async () => {
    if (!suite.server) return
    const { dataDir } = suite.server
    await suite.server[Symbol.asyncDispose]()
    const nothing = { mounts: [], processes: [], cgroups: [], links: [], tables: [], loops: [], slots: [] }
    assert.deepEqual(tracesOf(dataDir, slot), nothing)
    assert.ok(!existsSync(dataDir), `${dataDir} is gone`)
  })
  return suite
}
