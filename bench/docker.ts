// Docker to compare with: dockerd from Debian's docker.io with its own data directory and socket, and an
// image made from the same files as our base. It starts and ends with the bench, and needs no registry.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const IMAGE = 'islet-bench-base'
const START_TIMEOUT_MS = 60_000

export class Docker {
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
      this.#host,
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
  }

  /** `rootDirectory` is the unpacked root filesystem of our base image. */
  static async start(rootDirectory: string): Promise<Docker> {
    const docker = new Docker(await mkdtemp(join(tmpdir(), 'islet-docker-')))
    try {
      await docker.#ready()
      await docker.#import(rootDirectory)
    } catch (error) {
      await docker[Symbol.asyncDispose]()
      throw error
    }
    return docker
  }

  async run(command: string[]): Promise<void> {
    await this.#docker(['run', '--rm', '--network', 'none', IMAGE, ...command])
  }

  /** A container that stays until `remove`; its id. */
  async start(command: string[] = ['sleep', '3600']): Promise<string> {
    return (await this.#docker(['run', '--detach', '--network', 'none', IMAGE, ...command])).trim()
  }

  async exec(id: string, command: string[]): Promise<void> {
    await this.#docker(['exec', id, ...command])
  }

  /** Milliseconds to the first byte of the output. */
  async firstByte(id: string, command: string[]): Promise<number> {
    const started = performance.now()
    const child = spawn('docker', ['--host', this.#host, 'exec', id, ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'close')
    await once(child.stdout, 'data')
    const ms = performance.now() - started
    await ended
    return ms
  }

  /** `docker cp`; one of the two is `container:path`. */
  async copy(from: string, to: string): Promise<void> {
    await this.#docker(['cp', from, to])
  }

  /** The container's files as an image, and a first command in a container of it. */
  async commit(id: string): Promise<string> {
    return (await this.#docker(['commit', id])).trim()
  }

  async runImage(image: string, command: string[]): Promise<void> {
    await this.#docker(['run', '--rm', '--network', 'none', image, ...command])
  }

  async remove(ids: string[]): Promise<void> {
    if (ids.length > 0) await this.#docker(['rm', '--force', ...ids])
  }

  async removeImage(image: string): Promise<void> {
    await this.#docker(['image', 'rm', '--force', image])
  }

  async version(): Promise<string> {
    return (await this.#docker(['version', '--format', '{{.Server.Version}}'])).trim()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#daemon.exitCode === null) {
      this.#daemon.kill('SIGTERM')
      await once(this.#daemon, 'exit')
    }
    await rm(this.#directory, { recursive: true, force: true })
  }

  get #host(): string {
    return `unix://${join(this.#directory, 'docker.sock')}`
  }

  async #docker(args: string[]): Promise<string> {
    return (await execute('docker', ['--host', this.#host, ...args])).stdout
  }

  async #ready(): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS
    while (Date.now() < deadline && this.#daemon.exitCode === null) {
      const up = await this.#docker(['info']).then(
        () => true,
        () => false,
      )
      if (up) return
      await setTimeout(200)
    }
    throw new Error(`dockerd did not start:\n${this.#log}`)
  }

  async #import(rootDirectory: string): Promise<void> {
    const tar = spawn('tar', ['--numeric-owner', '-C', rootDirectory, '-c', '.'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const load = spawn('docker', ['--host', this.#host, 'import', '-', IMAGE], {
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    tar.stdout!.pipe(load.stdin!)
    const [code] = await once(load, 'exit')
    if (code !== 0) throw new Error('docker import failed')
    // Otherwise the kernel would write the image to the disk during the measurement.
    await execute('sync')
  }
}
