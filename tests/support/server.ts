// A real server in a process of its own, on a data directory of its own, for tests that cross processes.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Islet } from 'islet'

export const root = fileURLToPath(new URL('../..', import.meta.url))
/** scripts/test names a bundle, which starts in half the time of the sources. */
export const ISLET = process.env.ISLET_TEST_PROGRAM ?? join(root, 'packages/cli/bin/islet.js')

/** Loading its code takes a second of CPU time; on a machine that is busy with other tests that is half a minute. */
const START_TIMEOUT_MS = 120_000

/** The flags with which bin/islet.js would restart it. */
const SMALL_HEAP = ['--max-semi-space-size=8', '--heap-growing-percent=40']
/** Few, because most tests make few sandboxes. */
const FEW_WARM = { ISLET_WARM_MIN: '1' }
/** The server then holds only the resources that its sandboxes need. */
export const WITHOUT_WARM = { ISLET_WARM_MAX: '0' }

export interface TestServerOptions {
  /** Read at every start. */
  env?: Record<string, string>
  /** Default: a new one. */
  dataDir?: string
}

export class TestServer {
  readonly dataDir: string
  readonly #env: Record<string, string>
  #child: ChildProcess | undefined
  url = ''
  output = ''

  constructor(options: TestServerOptions = {}) {
    this.#env = options.env ?? {}
    this.dataDir = options.dataDir ?? newDataDir()
  }

  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const server = new TestServer(options)
    await server.start()
    return server
  }

  get pid(): number {
    return this.#child!.pid!
  }

  get key(): string {
    return readFileSync(join(this.dataDir, 'key'), 'utf8').trim()
  }

  /** The environment in which the SDK and the CLI find this server and no other. */
  get clientEnv(): NodeJS.ProcessEnv {
    return { ...cleanEnv(), ISLET_URL: this.url, ISLET_API_KEY: this.key }
  }

  islet(): Islet {
    return new Islet({ url: this.url, apiKey: this.key })
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { Authorization: `Bearer ${this.key}`, ...(init.headers as Record<string, string>) }
    return fetch(this.url + path, { ...init, headers })
  }

  post(path: string, body: unknown): Promise<Response> {
    const headers = { 'Content-Type': 'application/json' }
    return this.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  async start(): Promise<void> {
    const port = this.url ? new URL(this.url).port : '0'
    this.output = ''
    const child = spawn(process.execPath, [...SMALL_HEAP, ISLET, 'serve', '--no-setup', '--port', port], {
      env: {
        ...cleanEnv(),
        ISLET_LOG_FORMAT: 'json',
        ...FEW_WARM,
        ...this.#env,
        ISLET_DATA_DIR: this.dataDir,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    child.stdout!.on('data', (chunk: Buffer) => this.#keep(chunk))
    child.stderr!.on('data', (chunk: Buffer) => this.#keep(chunk))
    const deadline = Date.now() + START_TIMEOUT_MS
    while (Date.now() < deadline && child.exitCode === null && child.signalCode === null) {
      const match = /https?:\/\/127\.0\.0\.1:(\d+)/.exec(this.output)
      if (match) {
        this.url = match[0]
        return
      }
      await sleep(10)
    }
    throw new Error(`The server did not start:\n${this.output}`)
  }

  /** Kills the server, like a crash. Sandboxes keep running. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Waits until it has ended by itself. */
  async ended(): Promise<void> {
    const child = this.#child!
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  /** Stops it as an administrator would. */
  async stop(): Promise<number | null> {
    return this.#end('SIGTERM')
  }

  /** Stops every sandbox and the server, and removes its data directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) await this.start()
    const islet = this.islet()
    for (;;) {
      const { sandboxes } = await islet.sandboxes.list({ limit: 1000 })
      if (sandboxes.length === 0) break
      await Promise.all(sandboxes.map(({ id }) => islet.sandboxes.delete(id)))
    }
    await this.stop()
    rmSync(this.dataDir, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child!
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
    child.kill(signal)
    await once(child, 'exit')
    return child.exitCode
  }

  #keep(chunk: Buffer): void {
    this.output = (this.output + chunk.toString()).slice(-1_000_000)
  }
}

/** With the image `host` of scripts/run-tests.ts, as hard links, if there is one. */
function newDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'islet-test-'))
  const images = process.env.ISLET_TEST_IMAGES
  if (images) spawnSync('cp', ['-al', images, join(dataDir, 'images')])
  return dataDir
}

/** The environment without settings of another server. */
export function cleanEnv(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('ISLET_') || name.startsWith('ISLET_TEST_'),
  )
  return Object.fromEntries(entries)
}
