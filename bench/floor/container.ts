// The minimum cost of a new container: an OCI runtime runs `true` in an existing bundle, with the base image as read-only root.
// Uses crun, which is faster, else runc.
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
/** If cgroups of both versions are mounted, crun starts only if version 2 is hidden from it. */
const UNSEEN = ['unshare', '--mount', 'sh', '-c', 'umount /sys/fs/cgroup/unified && exec "$@"', 'sh']
const CRUN = ['crun', '--cgroup-manager=disabled']
/** The first that works is used. */
const COMMANDS = [CRUN, [...UNSEEN, ...CRUN], ['runc']]

export class BareContainer {
  readonly runtime: string
  readonly #command: string[]
  readonly #directory: string
  #runs = 0

  private constructor(command: string[], directory: string) {
    this.runtime = command.includes('crun') ? 'crun' : 'runc'
    this.#command = command
    this.#directory = directory
  }

  static async prepare(directory: string, rootDirectory: string): Promise<BareContainer> {
    await mkdir(directory)
    await execute('runc', ['spec'], { cwd: directory })
    const file = join(directory, 'config.json')
    const spec = JSON.parse(await readFile(file, 'utf8'))
    Object.assign(spec.process, { args: ['true'], terminal: false })
    spec.root = { path: rootDirectory, readonly: true }
    await writeFile(file, JSON.stringify(spec))
    for (const command of COMMANDS) {
      const container = new BareContainer(command, directory)
      const works = await container.run().then(
        () => true,
        () => false,
      )
      if (works) return container
    }
    throw new Error('neither crun nor runc runs `true` in the base image')
  }

  async run(): Promise<void> {
    const id = `islet-bench-${process.pid}-${this.#runs++}`
    const state = join(this.#directory, 'state')
    const [program, ...options] = this.#command
    await execute(program!, [...options, '--root', state, 'run', '--bundle', this.#directory, id])
  }
}
