// The least that a new container costs without us: `runc run` of `true` in a bundle that is there already, on the base
// image's files, which it may not write.
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export class BareRunc {
  readonly #directory: string
  #runs = 0

  private constructor(directory: string) {
    this.#directory = directory
  }

  static async prepare(directory: string, rootDirectory: string): Promise<BareRunc> {
    await mkdir(directory)
    await execute('runc', ['spec', '--bundle', directory])
    const file = join(directory, 'config.json')
    const spec = JSON.parse(await readFile(file, 'utf8'))
    Object.assign(spec.process, { args: ['true'], terminal: false })
    spec.root = { path: rootDirectory, readonly: true }
    await writeFile(file, JSON.stringify(spec))
    return new BareRunc(directory)
  }

  async run(): Promise<void> {
    const id = `islet-bench-${process.pid}-${this.#runs++}`
    await execute('runc', ['--root', join(this.#directory, 'state'), 'run', '--bundle', this.#directory, id])
  }
}
