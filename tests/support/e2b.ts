// The part of E2B's wire that the published client `e2b` needs to run commands and to read and write files, over a directory of this machine.
//
//   POST /v2/sandboxes, DELETE /sandboxes/{id}
//   POST /process.Process/Start        a stream of envelopes: u8 flags, u32 length, JSON; flags 2 ends it
//   POST /process.Process/SendSignal
//   GET, POST /files?path=             POST has a form with one file
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'

const ID = 'fake'
const VERSION = '0.6.4'

export class FakeE2B implements AsyncDisposable {
  /** The bodies of the creates, and whether the sandbox was killed. */
  readonly created: { templateID: string; apiKey: unknown }[] = []
  isKilled = false
  readonly #directory: string
  readonly #server: Server
  readonly #processes = new Map<number, ChildProcess>()

  private constructor(directory: string) {
    this.#directory = directory
    this.#server = createServer((request, answer) => {
      this.#answer(request, answer).catch((error) => answer.destroy(error))
    })
  }

  static async start(directory: string): Promise<FakeE2B> {
    const fake = new FakeE2B(directory)
    fake.#server.listen(0, '127.0.0.1')
    await once(fake.#server, 'listening')
    return fake
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    for (const child of this.#processes.values()) child.kill('SIGKILL')
  }

  async #answer(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url!, this.url)
    const body = await buffer(request)
    const path = () => resolve(this.#directory, searchParams.get('path')!)
    switch (`${request.method} ${pathname}`) {
      case 'POST /v2/sandboxes': {
        const { templateID } = JSON.parse(body.toString())
        this.created.push({ templateID, apiKey: request.headers['x-api-key'] })
        return json(answer, 201, { sandboxID: ID, templateID, clientID: ID, envdVersion: VERSION })
      }
      case `DELETE /sandboxes/${ID}`:
        this.isKilled = true
        return void answer.writeHead(204).end()
      case 'POST /process.Process/Start':
        return this.#start(JSON.parse(body.subarray(5).toString()).process, answer)
      case 'POST /process.Process/SendSignal':
        this.#processes.get(JSON.parse(body.toString()).process.pid)?.kill('SIGKILL')
        return json(answer, 200, {})
      case 'GET /files':
        if (existsSync(path())) return void answer.end(readFileSync(path()))
        return json(answer, 404, { code: 404, message: 'no such file' })
      case 'POST /files': {
        const headers = { 'Content-Type': request.headers['content-type']! }
        const form = await new Response(body, { headers }).formData()
        mkdirSync(dirname(path()), { recursive: true })
        writeFileSync(path(), Buffer.from(await (form.get('file') as File).arrayBuffer()))
        return json(answer, 200, [{ path: path(), name: 'file', type: 'file' }])
      }
      default:
        return json(answer, 404, { code: 404, message: `${request.method} ${pathname}` })
    }
  }

  async #start(
    { cmd, args, envs, cwd }: { cmd: string; args: string[]; envs?: object; cwd?: string },
    answer: ServerResponse,
  ): Promise<void> {
    answer.writeHead(200, { 'Content-Type': 'application/connect+json' })
    const send = (flags: number, message: object) => {
      const bytes = Buffer.from(JSON.stringify(message))
      const head = Buffer.alloc(5)
      head.writeUInt8(flags)
      head.writeUInt32BE(bytes.length, 1)
      answer.write(Buffer.concat([head, bytes]))
    }
    const env = { PATH: process.env.PATH, HOME: this.#directory, ...envs }
    const child = spawn(cmd, args, {
      cwd: resolve(this.#directory, cwd ?? '.'),
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#processes.set(child.pid!, child)
    send(0, { event: { start: { pid: child.pid } } })
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk: Buffer) =>
        send(0, { event: { data: { [name]: chunk.toString('base64') } } }),
      )
    const [code] = await once(child, 'close')
    this.#processes.delete(child.pid!)
    const status = code === null ? 'signal: killed' : `exit status ${code}`
    const error = code === 0 ? {} : { error: status }
    send(0, { event: { end: { exitCode: code ?? -1, exited: code !== null, status, ...error } } })
    send(2, {})
    answer.end()
  }
}

function json(answer: ServerResponse, status: number, body: object): void {
  answer.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}
