// For tests of the link: a link in its own directory, the real guest as a child process, and a raw guest that sends any bytes.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { decodeFields, encodeMessage, type Fields } from '../wire/fields.ts'
import { FrameDecoder } from '../wire/frames.ts'
import type { OutputChannel, OutputSink, SpawnSpec } from './guest.ts'
import { type Link, type LinkOptions, listenLink } from './link.ts'
import { FIELDS, GENERATION, MESSAGE, type MessageName } from './messages.gen.ts'

export const GUEST_BINARY =
  process.env.GUEST_BINARY ?? fileURLToPath(new URL('../../../../native/build/guest', import.meta.url))

export interface TestLink {
  link: Link
  directory: string
  socketPath: string
  /** What the link logged. */
  logged: { fields: { reason?: string }; message: string }[]
}

export async function openLink(t: TestContext, options: Partial<LinkOptions> = {}): Promise<TestLink> {
  const directory = await mkdtemp(join(tmpdir(), 'islet-link-'))
  const socketPath = join(directory, 'link.sock')
  t.after(() => rm(directory, { recursive: true, force: true }))
  const logged: TestLink['logged'] = []
  const note = (fields: object, message: string) => void logged.push({ fields, message })
  const link = await listenLink({ socketPath, log: { warn: note, error: note }, ...options })
  t.after(() => link.close())
  return { link, directory, socketPath, logged }
}

export async function openGuest(t: TestContext, options: Partial<LinkOptions> = {}) {
  const opened = await openLink(t, options)
  const child = startGuest(t, opened.socketPath)
  await opened.link.ready({ timeoutMs: 5000 })
  return { ...opened, child }
}

export function startGuest(t: TestContext, socketPath: string): ChildProcess {
  const child = spawn(GUEST_BINARY, ['--socket', socketPath], { stdio: ['ignore', 'inherit', 'inherit'] })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  return child
}

let nextId = 0

export function spec(argv: string[], more: Partial<SpawnSpec> = {}): SpawnSpec {
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin' }
  return { id: `prc-${process.pid}-${nextId++}`, argv, env, cwd: '/', user: '', stdin: false, ...more }
}

export class Collector implements OutputSink {
  stdout = ''
  stderr = ''
  end = 0
  write(channel: OutputChannel, bytes: Buffer, offset: number): void {
    if (offset !== this.end) throw new Error(`output at ${offset} after ${this.end}`)
    this.end += bytes.length
    this[channel] += bytes.toString('latin1')
  }
}

/** Runs a command to its end and forgets it. */
export async function run(link: Link, argv: string[], more: Partial<SpawnSpec> = {}) {
  const sink = new Collector()
  const process = await link.spawn(spec(argv, more), sink)
  const exit = await process.exited
  process.forget()
  return { ...exit, stdout: sink.stdout, stderr: sink.stderr }
}

export interface Received {
  name: MessageName
  stream: number
  fields: Fields
  payload: Buffer
}

const NAMES = new Map(Object.entries(MESSAGE).map(([name, code]) => [code as number, name as MessageName]))

/** A guest made of nothing but a socket. */
export class RawGuest {
  readonly socket: Socket
  readonly closed: Promise<void>
  #received: Received[] = []
  #waiting: ((message: Received | undefined) => void) | undefined
  #decoder = new FrameDecoder()

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => this.#decoder.push(chunk, (frame) => this.#onFrame(frame)))
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.once('close', () => this.#waiting?.(undefined))
  }

  /** Connects and says nothing. */
  static async connect(t: TestContext, socketPath: string): Promise<RawGuest> {
    const socket = connect(socketPath)
    t.after(() => socket.destroy())
    await once(socket, 'connect')
    return new RawGuest(socket)
  }

  /** Connects, says HELLO and waits for WELCOME. */
  static async greet(t: TestContext, socketPath: string, bootId = 'boot-1'): Promise<RawGuest> {
    const guest = await RawGuest.connect(t, socketPath)
    guest.send('HELLO', 0, { generation: GENERATION, bootId, privileged: 1 })
    await guest.expect('WELCOME')
    return guest
  }

  send(name: MessageName, stream: number, fields: Fields | Buffer = {}): void {
    this.raw(encode(name, stream, fields))
  }

  raw(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(bytes)
  }

  output(stream: number, channel: number, offset: number, bytes: Uint8Array): void {
    this.send('OUTPUT', stream, outputPayload(channel, offset, bytes))
  }

  /** The next message from the server; undefined when the connection is closed. */
  next(): Promise<Received | undefined> {
    const message = this.#received.shift()
    if (message || this.socket.destroyed) return Promise.resolve(message)
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  async expect(name: MessageName): Promise<Received> {
    const message = await this.next()
    if (message?.name !== name) throw new Error(`expected ${name}, got ${message?.name ?? 'the end'}`)
    return message
  }

  #onFrame(frame: { type: number; stream: number; payload: Buffer }): void {
    const name = NAMES.get(frame.type)
    if (!name) throw new Error(`the server sent type ${frame.type}`)
    const payload = Buffer.from(frame.payload)
    const table = FIELDS[name]
    const message = { name, stream: frame.stream, payload, fields: table ? decodeFields(table, payload) : {} }
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting) waiting(message)
    else this.#received.push(message)
  }
}

export function encode(name: MessageName, stream: number, fields: Fields | Buffer = {}): Buffer {
  if (!Buffer.isBuffer(fields)) return encodeMessage(MESSAGE[name], stream, FIELDS[name] ?? [], fields)
  return rawFrame(MESSAGE[name], stream, fields)
}

/** A frame with whatever in it; `length` lies about the payload's. */
export function rawFrame(type: number, stream: number, payload: Uint8Array, length = payload.length): Buffer {
  const frame = Buffer.alloc(9 + payload.length)
  frame.writeUInt32LE(length, 0)
  frame[4] = type
  frame.writeUInt32LE(stream, 5)
  frame.set(payload, 9)
  return frame
}

export function outputPayload(channel: number, offset: number, bytes: Uint8Array): Buffer {
  const payload = Buffer.alloc(9 + bytes.length)
  payload[0] = channel
  payload.writeBigUInt64LE(BigInt(offset), 1)
  payload.set(bytes, 9)
  return payload
}

/** Fails loudly when something that should have rejected did not. */
export async function rejection(
  promise: Promise<unknown>,
): Promise<{ code?: string; name: string; message: string }> {
  try {
    await promise
  } catch (error) {
    return error as { code?: string; name: string; message: string }
  }
  throw new Error('it was expected to fail')
}
