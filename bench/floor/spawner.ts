// spawn.c, built and running, and the connections to it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('spawn.c', import.meta.url))

export class Spawner {
  readonly #path: string
  readonly #program: ChildProcess
  readonly #sockets: Socket[] = []

  private constructor(path: string, program: ChildProcess) {
    this.#path = path
    this.#program = program
  }

  static async start(directory: string): Promise<Spawner> {
    const binary = join(directory, 'spawn')
    execFileSync('cc', ['-O2', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-o', binary, SOURCE])
    const path = join(directory, 'spawn.sock')
    const program = spawn(binary, [path], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(program.stdout, 'data')
    return new Spawner(path, program)
  }

  /** A caller with a connection of its own: runs a command, answers once it ended with 0. */
  async connect(): Promise<(command: readonly string[]) => Promise<void>> {
    const socket = createConnection(this.#path)
    this.#sockets.push(socket)
    await once(socket, 'connect')
    return async (command) => {
      const words = Buffer.from(command.map((word) => `${word}\0`).join(''))
      const answer = once(socket, 'data')
      socket.write(Buffer.concat([Buffer.of(words.length), words]))
      const [code] = (await answer)[0] as Buffer
      if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}`)
    }
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    const ended = once(this.#program, 'exit')
    this.#program.kill()
    await ended
  }
}
