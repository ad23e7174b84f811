// One server for all tests of a file, and the check that it leaves nothing on the machine.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after } from 'node:test'
import type { CreateOptions, Islet, Sandbox } from 'islet'
import { slotOf, tracesOf } from './leftovers.ts'
import { TestServer, type TestServerOptions } from './server.ts'

export class Suite {
  readonly server: TestServer
  readonly islet: Islet
  readonly #slot: string | undefined

  constructor(server: TestServer) {
    this.server = server
    this.islet = server.islet()
    this.#slot = slotOf(server.dataDir)
  }

  create(options: CreateOptions = {}): Promise<Sandbox> {
    return this.islet.sandboxes.create({ runtime: 'host', ...options })
  }

  /** Ends the server and checks that nothing is left. */
  async close(): Promise<void> {
    const { dataDir } = this.server
    await this.server[Symbol.asyncDispose]()
    const nothing = { mounts: [], processes: [], cgroups: [], links: [], tables: [], loops: [], slots: [] }
    assert.deepEqual(tracesOf(dataDir, this.#slot), nothing)
    assert.ok(!existsSync(dataDir), `${dataDir} is gone`)
  }
}

/** `const suite = await startSuite()` at the top of a file: its tests share that server. */
export async function startSuite(options: TestServerOptions = {}): Promise<Suite> {
  const suite = new Suite(await TestServer.start(options))
  after(() => suite.close())
  return suite
}
