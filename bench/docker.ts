// Docker to compare with: an image made from the same files as our base. It starts and ends with the bench.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { Dockerd } from '../tests/support/dockerd.ts'

const execute = promisify(execFile)
const IMAGE = 'islet-bench-base'

export class Docker {
  readonly #dockerd: Dockerd

  private constructor(dockerd: Dockerd) {
    this.#dockerd = dockerd
  }

  /** `rootDirectory` is the unpacked root filesystem of our base image. */
  static async start(rootDirectory: string): Promise<Docker> {
    const docker = new Docker(await Dockerd.start())
    try {
      await docker.#dockerd.import(rootDirectory, IMAGE)
      // Otherwise the kernel would write the image to the disk during the measurement.
      await execute('sync')
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
    const child = spawn('docker', ['--host', this.#dockerd.host, 'exec', id, ...command], {
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
    await this.#dockerd[Symbol.asyncDispose]()
  }

  #docker(args: string[]): Promise<string> {
    return this.#dockerd.docker(args)
  }
}
