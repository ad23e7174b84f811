// The minimum cost of a request: a Node server of ten lines in its own process, and a kept connection to it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'

/** Prints its port, answers everything with five bytes. */
export const HELLO = `
const server = require('node:http').createServer((_, answer) => answer.end('hello'))
server.listen(Number(process.argv[1]), '127.0.0.1', () => console.log(server.address().port))
`

export class BareHttp {
  readonly url: string
  readonly #program: ChildProcess

  private constructor(url: string, program: ChildProcess) {
    this.url = url
    this.#program = program
  }

  static async start(): Promise<BareHttp> {
    const program = spawn(process.execPath, ['-e', HELLO, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [port] = await once(program.stdout, 'data')
    return new BareHttp(`http://127.0.0.1:${Number(String(port))}`, program)
  }

  async stop(): Promise<void> {
    const ended = once(this.#program, 'exit')
    this.#program.kill()
    await ended
  }
}

/** Asks for the page on one kept connection. */
export class Asker {
  readonly #url: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  constructor(url: string) {
    this.#url = url
  }

  async ask(): Promise<void> {
    const [answer] = await once(get(this.#url, { agent: this.#agent }), 'response')
    let text = ''
    for await (const piece of answer) text += piece
    if (text !== 'hello') throw new Error(`${answer.statusCode}: ${text}`)
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}
