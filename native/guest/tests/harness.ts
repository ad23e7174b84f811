// A minimal server end of the guest's socket: tests see every frame.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as messages from '../../../packages/server/src/guest/messages.gen.ts'
import { decodeFields, encodeFields, type FieldTable } from '../../../packages/server/src/wire/fields.ts'
import { encodeFrame, FrameDecoder } from '../../../packages/server/src/wire/frames.ts'
import { within } from './wait.ts'

export * from './wait.ts'

export const { MESSAGE, INITIAL_WINDOW, MAX_DATA, OUTPUT_BUFFER, STDIN_BUFFER } = messages
export const GUEST_BINARY = resolve(process.env.GUEST_BINARY ?? 'native/build/guest')
export const SANITIZED = GUEST_BINARY.includes('asan')
export const isRoot = process.getuid?.() === 0

type Name = keyof typeof MESSAGE
// biome-ignore lint/suspicious/noExplicitAny: tests look at fields by name
export type Fields = Record<string, any>

const TABLES = messages.FIELDS as unknown as Record<string, FieldTable | undefined>
const NAMES = new Map(Object.entries(MESSAGE).map(([name, code]) => [code as number, name as Name]))
const KINDS = new Map(Object.entries(messages.ERROR_KIND).map(([name, code]) => [code as number, name]))

export interface Message {
  name: Name
  stream: number
  raw: Buffer
  fields: Fields
}

/** An ERROR frame, thrown by the helpers that expect an answer. */
export class GuestError extends Error {
  kind: string
  errnoName: string
  stage: string
  /** Undefined: the path of the request. */
  path: string | undefined
  constructor(fields: Fields) {
    super(fields.message)
    this.kind = KINDS.get(fields.kind) ?? String(fields.kind)
    this.errnoName = fields.errnoName
    this.stage = fields.stage
    this.path = fields.path
  }
}

/** The frames of one stream, in order. */
export class Stream {
  readonly number: number
  readonly guest: Guest
  readonly queue: Message[] = []
  #waiting: ((message: Message) => void) | undefined

  constructor(guest: Guest, number: number) {
    this.guest = guest
    this.number = number
  }

  push(message: Message) {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting) waiting(message)
    else this.queue.push(message)
  }

  /** The next frame. An ERROR throws unless it is asked for. */
  async next(...expected: Name[]): Promise<Message> {
    const message =
      this.queue.shift() ??
      (await within(
        new Promise<Message>((done) => {
          this.#waiting = done
        }),
        `a frame on stream ${this.number}`,
      ))
    if (message.name === 'ERROR' && !expected.includes('ERROR')) throw new GuestError(message.fields)
    if (expected.length > 0 && !expected.includes(message.name))
      throw new Error(`expected ${expected.join(' or ')}, got ${message.name}`)
    return message
  }

  send(name: Name, fields: Fields = {}) {
    this.guest.send(name, this.number, fields)
  }

  raw(name: Name, bytes: Uint8Array) {
    this.guest.raw(MESSAGE[name], this.number, bytes)
  }
}

export interface Result {
  code: number
  signal: number
  timedOut: boolean
  stdout: Buffer
  stderr: Buffer
  output: Buffer
}

export class Guest {
  readonly dir = mkdtempSync(join(tmpdir(), 'guest-test-'))
  readonly socketPath = join(this.dir, 'link.sock')
  child!: ChildProcess
  socket: Socket | undefined
  hello: Fields = {}
  connections = 0
  stderr = ''
  #server!: Server
  #streams = new Map<number, Stream>()
  #number = 0
  #pongs: ((bytes: Buffer) => void)[] = []
  #connected = Promise.withResolvers<void>()
  #closed = Promise.withResolvers<void>()
  #welcomed = false
  /** All pongs so far. */
  readonly pongs: string[] = []
  /** Answer HELLO by itself; a test may switch it off. */
  autoWelcome = true

  static async start(wrapper: string[] = []): Promise<Guest> {
    const guest = new Guest()
    await guest.listen()
    const [command, ...args] = [...wrapper, GUEST_BINARY, '--socket', guest.socketPath]
    guest.child = spawn(command!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    process.once('exit', () => guest.child.kill('SIGKILL')) // only when a test broke off
    guest.child.stderr!.on('data', (bytes) => {
      guest.stderr += bytes
    })
    await guest.connected()
    return guest
  }

  get pid(): number {
    return this.child.pid!
  }

  path(...names: string[]): string {
    return join(this.dir, ...names)
  }

  async listen() {
    this.#server = createServer((socket) => this.#accept(socket))
    await new Promise<void>((done) => this.#server.listen(this.socketPath, done))
  }

  /** The server goes away: connections are not accepted any more. */
  async stopListening() {
    this.drop()
    await new Promise((done) => this.#server.close(done))
  }

  connected(): Promise<void> {
    return within(this.#connected.promise, 'the guest to connect')
  }

  /** Resolves when either side has closed the current connection. */
  closed(): Promise<void> {
    const { promise } = this.#closed
    const waited = within(promise, 'the connection to close')
    waited.catch(() => {}) // the caller that awaits it gets the error
    return waited
  }

  #accept(socket: Socket) {
    const decoder = new FrameDecoder()
    const closed = Promise.withResolvers<void>()
    // The guest dials at once: the new connection may arrive before the end of the old one.
    this.#lose()
    this.socket = socket
    this.#closed = closed
    this.connections++
    socket.on('error', () => {})
    socket.on('close', () => {
      if (this.socket === socket) this.#lose()
      closed.resolve()
    })
    socket.on('data', (bytes) =>
      decoder.push(bytes, (frame) => this.#take(frame.type, frame.stream, frame.payload)),
    )
  }

  #lose() {
    this.socket = undefined
    this.#streams.clear()
    this.#pongs = []
    if (this.#welcomed) this.#connected = Promise.withResolvers<void>()
    this.#welcomed = false
  }

  #take(type: number, stream: number, raw: Buffer) {
    const name = NAMES.get(type)
    if (!name) throw new Error(`the guest sent message ${type}`)
    const table = TABLES[name]
    const fields = table ? (decodeFields(table, raw) as Fields) : {}
    if (name === 'HELLO') {
      this.hello = fields
      if (this.autoWelcome) this.welcome()
    } else if (name === 'PONG') {
      this.pongs.push(raw.toString())
      this.#pongs.shift()?.(Buffer.from(raw))
    } else this.#streams.get(stream)?.push({ name, stream, raw: Buffer.from(raw), fields })
  }

  welcome() {
    this.send('WELCOME', 0, { generation: messages.GENERATION })
    this.#welcomed = true
    this.#connected.resolve()
  }

  send(name: Name, stream: number, fields: Fields = {}) {
    this.raw(MESSAGE[name], stream, encodeFields(TABLES[name]!, fields))
  }

  raw(type: number, stream: number, payload: Uint8Array) {
    this.socket?.write(encodeFrame(type, stream, payload))
  }

  /** Opens a stream with a request. */
  request(name: Name, fields: Fields = {}): Stream {
    const stream = this.stream()
    stream.send(name, fields)
    return stream
  }

  stream(): Stream {
    const stream = new Stream(this, ++this.#number)
    this.#streams.set(stream.number, stream)
    return stream
  }

  /** A request that is answered by one frame. */
  async ask(name: Name, fields: Fields = {}): Promise<Fields> {
    return (await this.request(name, fields).next('OK')).fields
  }

  async ping(text = 'ping'): Promise<string> {
    const pong = new Promise<Buffer>((done) => this.#pongs.push(done))
    this.raw(MESSAGE.PING, 0, Buffer.from(text))
    return (await within(pong, 'a pong')).toString()
  }

  /** Cuts the connection; the guest dials again by itself. */
  drop() {
    this.socket?.destroy()
  }

  async reconnect() {
    const closed = this.closed()
    this.drop()
    await closed
    await this.connected()
  }

  /** Starts a process and waits until it runs. */
  async spawn(argv: string[], fields: Fields = {}): Promise<Stream & { id: string; pid: number }> {
    const id = fields.id ?? `prc-${++this.#number}`
    const stream = this.request('SPAWN', { env: [`PATH=${process.env.PATH}`], ...fields, id, argv })
    const { pid } = (await stream.next('SPAWNED')).fields
    return Object.assign(stream, { id, pid })
  }

  /** Runs a process to its end, acknowledging all output, and forgets it. */
  async run(argv: string[], fields: Fields = {}): Promise<Result> {
    const result = await collect(await this.spawn(argv, fields))
    return result
  }

  sh(script: string, fields: Fields = {}): Promise<Result> {
    return this.run(['/bin/sh', '-c', script], fields)
  }

  async readFile(path: string, fields: Fields = {}): Promise<Buffer> {
    return download(this.request('READ', { path, ...fields }))
  }

  async writeFile(path: string, content: Uint8Array | string, fields: Fields = {}): Promise<Fields> {
    return upload(this.request('WRITE', { path, ...fields }), Buffer.from(content))
  }

  /** For a guest in a pid namespace: ends the namespace with everything in it. */
  async kill() {
    const exited = new Promise((done) => this.child.once('exit', done))
    this.child.kill('SIGKILL')
    await within(exited, 'the guest to be killed')
    await this.stopListening()
    rmSync(this.dir, { recursive: true, force: true })
  }

  async stop() {
    const exited = new Promise<number | null>((done) => {
      if (this.child.exitCode !== null || this.child.signalCode !== null) done(this.child.exitCode)
      else this.child.once('exit', (code) => done(code))
    })
    // SIGCONT first: the leak check of the sanitizer build hangs in a stopped guest.
    this.child.kill('SIGCONT')
    this.child.kill('SIGTERM')
    const code = await within(exited, 'the guest to end')
    await this.stopListening()
    rmSync(this.dir, { recursive: true, force: true })
    if (code !== 0) throw new Error(`the guest ended with ${code}: ${this.stderr}`)
  }
}

/** Takes OUTPUT and ACKs it until EXITED, then FORGETs. */
export async function collect(stream: Stream): Promise<Result> {
  const chunks: { channel: number; bytes: Buffer }[] = []
  let offset = 0
  for (;;) {
    const message = await stream.next('OUTPUT', 'EXITED', 'STDIN_WINDOW')
    if (message.name === 'OUTPUT') {
      const output = parseOutput(message)
      if (output.offset !== offset) throw new Error(`output at ${output.offset} instead of ${offset}`)
      offset += output.bytes.length
      chunks.push(output)
      stream.send('ACK', { offset })
    } else if (message.name === 'EXITED') {
      const { code, signal, timedOut, outputEnd } = message.fields
      if (outputEnd !== offset) throw new Error(`output ends at ${outputEnd}, got ${offset}`)
      stream.send('FORGET')
      const join = (channel: number) =>
        Buffer.concat(chunks.filter((chunk) => chunk.channel === channel).map((chunk) => chunk.bytes))
      return {
        code,
        signal,
        timedOut: timedOut === 1,
        stdout: join(1),
        stderr: join(2),
        output: Buffer.concat(chunks.map((chunk) => chunk.bytes)),
      }
    }
  }
}

export function parseOutput(message: Message) {
  const { raw } = message
  return { channel: raw[0]!, offset: Number(raw.readBigUInt64LE(1)), bytes: raw.subarray(9) }
}

export function stdinFrame(offset: number, bytes: Uint8Array | string): Buffer {
  const head = Buffer.alloc(8)
  head.writeBigUInt64LE(BigInt(offset))
  return Buffer.concat([head, Buffer.from(bytes)])
}

/** Takes DATA until END, raising the window as it goes. */
export async function download(stream: Stream): Promise<Buffer> {
  const chunks: Buffer[] = []
  let received = 0
  await stream.next('OPENED')
  for (;;) {
    const message = await stream.next('DATA', 'END')
    if (message.name === 'END') return Buffer.concat(chunks)
    chunks.push(message.raw)
    received += message.raw.length
    stream.send('WINDOW', { limit: received + INITIAL_WINDOW })
  }
}

/** Sends DATA within the window, then END; returns the fields of OK. */
export async function upload(stream: Stream, content: Buffer): Promise<Fields> {
  let limit = INITIAL_WINDOW
  await stream.next('OPENED')
  for (let at = 0; at < content.length; ) {
    const end = Math.min(content.length, at + MAX_DATA, limit)
    if (end === at) limit = (await stream.next('WINDOW')).fields.limit
    else stream.raw('DATA', content.subarray(at, end))
    at = end
  }
  stream.send('END')
  for (;;) {
    const message = await stream.next('OK', 'WINDOW')
    if (message.name === 'OK') return message.fields
  }
}
