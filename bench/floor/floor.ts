// The floor: the minimum that this machine needs for the same work without a wall. Islet is compared with it and with Docker.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Samples, sample } from '../measure.ts'
import { BareContainer } from './container.ts'
import { copyTree, fileCopier } from './copy.ts'
import { Asker, BareHttp } from './http.ts'
import { Spawner } from './spawner.ts'

export class Floor {
  readonly #directory: string
  readonly spawner: Spawner
  readonly http: BareHttp
  readonly bare: BareContainer
  /** The unpacked root filesystem of our base image. */
  readonly rootDirectory: string

  private constructor(directory: string, parts: Pick<Floor, 'spawner' | 'http' | 'bare' | 'rootDirectory'>) {
    this.#directory = directory
    this.spawner = parts.spawner
    this.http = parts.http
    this.bare = parts.bare
    this.rootDirectory = parts.rootDirectory
  }

  static async start(rootDirectory: string): Promise<Floor> {
    const directory = await mkdtemp(join(tmpdir(), 'islet-floor-'))
    const spawner = await Spawner.start(directory)
    const http = await BareHttp.start()
    const bare = await BareContainer.prepare(join(directory, 'bundle'), rootDirectory)
    return new Floor(directory, { spawner, http, bare, rootDirectory })
  }

  /** A command spawned over the socket, one after another. */
  async spawn(n: number, command: readonly string[] = ['true']): Promise<Samples> {
    const run = await this.spawner.connect()
    return (await sample('bare posix_spawn', n, Math.ceil(n / 10), () => run(command))).summary()
  }

  /** One HTTP request after another on a kept connection. */
  async request(n: number): Promise<Samples> {
    using asker = new Asker(this.http.url)
    return (await sample('bare HTTP', n, Math.ceil(n / 10), () => asker.ask())).summary()
  }

  async container(n: number): Promise<Samples> {
    return (await sample('bare container', n, 1, () => this.bare.run())).summary()
  }

  /** A plain copy of the file that goes up and down. */
  copier(): Promise<() => Promise<void>> {
    return fileCopier(this.#directory)
  }

  async copyTree(rounds: number): Promise<Samples> {
    return copyTree(await mkdtemp(join(this.#directory, 'copies-')), rounds)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.spawner.stop()
    await this.http.stop()
    await rm(this.#directory, { recursive: true, force: true })
  }
}
