// A dockerd of its own, from Debian's docker.io: its own data directory and socket, no bridge, no firewall rules, and images made from
// directories, so it needs no registry.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const START_TIMEOUT_MS = 60_000

export class Dockerd implements AsyncDisposable {
  readonly #directory: string
  readonly #daemon: ChildProcess
  #log = ''

  private constructor(directory: string) {
    this.#directory = directory
    const args = ['--data-root', join(directory, 'data'), '--exec-root', join(directory, 'exec')]
    args.push(
      '--pidfile',
      join(directory, 'pid'),
      '--host',
      this.host,
      '--bridge',
      'none',
      '--iptables=false',
    )
    this.#daemon = spawn('dockerd', args, { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#daemon.stdout!, this.#daemon.stderr!]) {
      stream.on('data', (chunk: Buffer) => {
        this.#log = (this.#log + chunk).slice(-4000)
      })
    }
    this.#daemon.on('error', (error) => {
      this.#log += error
    })
  }

  /** Its directory is made in `parent`. */
  static async start(parent = tmpdir()): Promise<Dockerd> {
    const dockerd = new Dockerd(await mkdtemp(join(parent, 'islet-docker-')))
    try {
      await dockerd.#ready()
      return dockerd
    } catch (error) {
      await dockerd[Symbol.asyncDispose]()
      throw error
    }
  }

  /** For DOCKER_HOST. */
  get host(): string {
    return `unix://${join(this.#directory, 'docker.sock')}`
  }

  /** Runs the command docker; its output. */
  async docker(args: string[]): Promise<string> {
    return (await execute('docker', ['--host', this.host, ...args])).stdout
  }

  /** Makes an image of a root filesystem, without what matches the patterns of `exclude`. */
  async import(rootDirectory: string, name: string, exclude: readonly string[] = []): Promise<void> {
    const without = exclude.map((pattern) => `--exclude=${pattern}`)
    const tar = spawn('tar', ['--numeric-owner', ...without, '-C', rootDirectory, '-c', '.'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const load = spawn('docker', ['--host', this.host, 'import', '-', name], {
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    tar.stdout!.pipe(load.stdin!)
    const [code] = await once(load, 'exit')
    if (code !== 0) throw new Error('docker import failed')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (
      this.#daemon.pid !== undefined &&
      this.#daemon.exitCode === null &&
      this.#daemon.signalCode === null
    ) {
      this.#daemon.kill('SIGTERM')
      await once(this.#daemon, 'exit')
    }
    await rm(this.#directory, { recursive: true, force: true })
  }

  async #ready(): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS
    while (Date.now() < deadline && this.#daemon.pid !== undefined && this.#daemon.exitCode === null) {
      const up = await this.docker(['info']).then(
        () => true,
        () => false,
      )
      if (up) return
      await setTimeout(200)
    }
    throw new Error(`dockerd did not start:\n${this.#log}`)
  }
}
