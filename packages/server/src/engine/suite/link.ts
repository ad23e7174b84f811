// The least of a server's end of the link, so that the suite tests engines and nothing else: run a command to its end.
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { FIELDS, GENERATION, MESSAGE, type MessageName } from '../../guest/messages.gen.ts'
import { decodeFields, encodeFields, type Fields } from '../../wire/fields.ts'
import { encodeFrame, type Frame, FrameDecoder } from '../../wire/frames.ts'

export interface Result {
  code: number
  signal: number
  timedOut: boolean
  /** stdout and stderr as they came. */
  output: string
}

export interface RunOptions {
  user?: string
  cwd?: string
  env?: readonly string[]
  timeoutMs?: number
}

interface Stream {
  onFrame(frame: Frame): void
  onClose(): void
}

const OUTPUT_PREFIX_BYTES = 9
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export class TestLink {
  /** Of the guest that said hello last. */
  bootId = ''
  readonly #server: Server
  readonly #streams = new Map<number, Stream>()
  #hello = Promise.withResolvers<void>()
  #socket: Socket | undefined
  #lastStream = 0

  private constructor() {
    this.#server = createServer((socket) => this.#accept(socket))
  }

  static async listen(path: string): Promise<TestLink> {
    const link = new TestLink()
    await rm(path, { force: true })
    link.#server.listen(path)
    await once(link.#server, 'listening')
    return link
  }

  /** Resolves once the guest is connected. */
  ready(): Promise<void> {
    return this.#hello.promise
  }

  async close(): Promise<void> {
    this.#socket?.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  /** A shell script, or an argv, to its end. */
  async run(command: string | readonly string[], options: RunOptions = {}): Promise<Result> {
    const { user = '', cwd = '/', env = [PATH], timeoutMs = 60_000 } = options
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const chunks: Buffer[] = []
    let offset = 0
    const stream = this.#open({
      onFrame: (frame) => {
        if (frame.type === MESSAGE.OUTPUT) {
          const bytes = Buffer.from(frame.payload.subarray(OUTPUT_PREFIX_BYTES))
          chunks.push(bytes)
          offset += bytes.length
          this.#send('ACK', stream, { offset })
        } else if (frame.type === MESSAGE.EXITED) {
          const exit = decodeFields(FIELDS.EXITED!, frame.payload) as Record<string, number>
          this.#send('FORGET', stream, {})
          this.#streams.delete(stream)
          const output = Buffer.concat(chunks).toString()
          resolve({ code: exit.code ?? 0, signal: exit.signal ?? 0, timedOut: exit.timedOut === 1, output })
        } else if (frame.type === MESSAGE.ERROR) {
          this.#streams.delete(stream)
          reject(guestError(frame))
        }
      },
      onClose: () => reject(new Error('the guest hung up')),
    })
    const bytes = { argv: argv.map((word) => Buffer.from(word)), env: env.map((word) => Buffer.from(word)) }
    this.#send('SPAWN', stream, {
      id: `prc-${stream}-${Date.now()}`,
      cwd,
      user,
      timeoutMs,
      stdin: 0,
      ...bytes,
    })
    return promise
  }

  /** What `run` printed, when it succeeded. */
  async print(command: string | readonly string[], options?: RunOptions): Promise<string> {
    const { code, signal, output } = await this.run(command, options)
    if (code !== 0 || signal !== 0) throw new Error(`exit ${code}, signal ${signal}: ${output}`)
    return output.trim()
  }

  async setup(files: readonly { path: string; content: string }[]): Promise<void> {
    const file = files.map(({ path, content }) => ({ path, content: Buffer.from(content), mode: 0o644 }))
    await this.#call('SETUP', { file })
  }

  async killAll(): Promise<void> {
    await this.#call('KILL_ALL', {})
  }

  #call(name: MessageName, fields: Fields): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stream = this.#open({
      onFrame: (frame) => {
        this.#streams.delete(stream)
        if (frame.type === MESSAGE.OK) resolve()
        else reject(guestError(frame))
      },
      onClose: () => reject(new Error('the guest hung up')),
    })
    this.#send(name, stream, fields)
    return promise
  }

  #open(stream: Stream): number {
    this.#streams.set(++this.#lastStream, stream)
    return this.#lastStream
  }

  #send(name: MessageName, stream: number, fields: Fields): void {
    this.#socket?.write(encodeFrame(MESSAGE[name], stream, encodeFields(FIELDS[name]!, fields)))
  }

  #accept(socket: Socket): void {
    const decoder = new FrameDecoder()
    this.#socket = socket
    socket.on('error', () => {})
    socket.on('data', (chunk) => decoder.push(chunk, (frame) => this.#onFrame(frame)))
    socket.on('close', () => {
      for (const stream of this.#streams.values()) stream.onClose()
      this.#streams.clear()
      this.#hello = Promise.withResolvers()
    })
  }

  #onFrame(frame: Frame): void {
    if (frame.type !== MESSAGE.HELLO) {
      this.#streams.get(frame.stream)?.onFrame(frame)
      return
    }
    this.bootId = String(decodeFields(FIELDS.HELLO!, frame.payload).bootId)
    this.#send('WELCOME', 0, { generation: GENERATION })
    this.#hello.resolve()
  }
}

function guestError(frame: Frame): Error {
  const { stage, errnoName, message } = decodeFields(FIELDS.ERROR!, frame.payload)
  return new Error(`the guest refused: ${stage} ${errnoName} ${message}`)
}
