// An Islet server for one figure, with its own process and data directory, and the base image.
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Islet, Sandbox } from 'islet'
import { baseImageForTests } from '../packages/server/src/image/testing.ts'
import { TestServer } from '../tests/support/server.ts'
import type { Owners } from './memory.ts'

type CreateOptions = Parameters<Islet['sandboxes']['create']>[0]

/** Every sandbox is made from nothing. */
export const COLD = { ISLET_WARM_MIN: '0', ISLET_WARM_MAX: '0' }

/** The default pool of a server. */
export const USUAL = { ISLET_WARM_MIN: 'auto' }

/** A fixed number of waiting cells, so that changes of the pool's size do not affect the figures. */
export function warm(count: number): Record<string, string> {
  return { ISLET_WARM_MIN: String(count), ISLET_WARM_MAX: String(count) }
}

const FILL_TIMEOUT_MS = 120_000

export class BenchServer {
  readonly islet: Islet
  readonly #server: TestServer

  private constructor(server: TestServer) {
    this.#server = server
    this.islet = server.islet()
  }

  /** Ready, with a full pool. */
  static async start(env: Record<string, string> = {}): Promise<BenchServer> {
    const { imagesDir } = await baseImageForTests()
    const settings = { ISLET_IMAGE_DIR: imagesDir, ISLET_DEFAULT_RUNTIME: 'base', ISLET_LOG_LEVEL: 'warn' }
    const server = new BenchServer(await TestServer.start({ env: { ...settings, ...env } }))
    try {
      await server.filled()
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
    return server
  }

  create(options?: CreateOptions): Promise<Sandbox> {
    return this.islet.sandboxes.create(options)
  }

  /** Waits until the pool has reached its target. */
  async filled(): Promise<void> {
    const deadline = Date.now() + FILL_TIMEOUT_MS
    for (;;) {
      const { warm } = await this.islet.info()
      if (warm.ready >= warm.target) return
      if (Date.now() > deadline) throw new Error(`the pool has ${warm.ready} of ${warm.target} cells`)
      await setTimeout(5)
    }
  }

  /** Its processes and those of its sandboxes. */
  get owners(): Owners {
    return { names: ['warden', 'guest'], pids: [this.#server.pid] }
  }

  get rssBytes(): number {
    return (
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.#server.pid}/status`, 'utf8'))![1]) * 1024
    )
  }

  get url(): string {
    return this.#server.url
  }

  get key(): string {
    return this.#server.key
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }
}

/** Runs `true`, which must succeed. */
export async function runTrue(sandbox: Sandbox): Promise<void> {
  await ran(sandbox, ['true'])
}

export async function ran(sandbox: Sandbox, command: string | string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.exec.run(command)
  if (exitCode !== 0) throw new Error(`${command} ended with ${exitCode}: ${stderr}`)
  return stdout
}
