// The server's end of the warden: starts native/warden and turns its requests into promises.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { decodeFields, encodeMessage } from '../wire/fields.ts'
import { type Frame, FrameDecoder } from '../wire/frames.ts'
import {
  ERROR_KIND,
  type ErrorFields,
  type ErrorKind,
  FIELDS,
  type FieldsOf,
  GENERATION,
  MESSAGE,
  type OkFields,
} from './messages.gen.ts'

export interface WardenOptions {
  /** Has pool/layers/ and images/. A pool with its own filesystem must be mounted already. */
  dataDir: string
  /** An existing or new directory, where the warden mounts its scratch space; no other process sees that mount. */
  runDir: string
  bridge: string
  cgroup: string
  uidStart: number
  /** The number of ranges of 65,536 ids. */
  uidCount: number
  imagesDir?: string
  /** How layers are cloned; `auto` takes the best that the filesystem supports. */
  method?: 'auto' | 'btrfs' | 'reflink' | 'copy'
  /** For CELL_START: the directory of the bundles, the program of the OCI runtime, and its state directory. */
  cells?: { directory: string; runtime: string; runtimeRoot: string }
  /** Mount as kernels before 6.15 need it. */
  portable?: boolean
  binary?: string
}

type WardenRequest = Exclude<keyof FieldsOf, 'OK' | 'ERROR'>

/** The warden's ERROR. `kind` is EXITED when the warden died before it answered. */
export class WardenError extends Error {
  override name = 'WardenError'
  readonly kind: ErrorKind | 'EXITED'
  readonly errnoName: string
  readonly stage: string

  constructor(kind: ErrorKind | 'EXITED', errnoName: string, stage: string, message: string) {
    super(message)
    this.kind = kind
    this.errnoName = errnoName
    this.stage = stage
  }
}

interface Pending {
  name: WardenRequest
  resolve(fields: OkFields): void
  reject(error: WardenError): void
}

export class Warden {
  /** How layers are cloned, as the warden found out at start. */
  readonly method: 'btrfs' | 'reflink' | 'copy'
  /** Whether disk limits are enforced. */
  readonly quota: boolean
  /** Resolves with the reason once the warden is gone. */
  readonly exited: Promise<string>
  readonly pid: number
  readonly #channel: Channel

  private constructor(channel: Channel, hello: OkFields) {
    this.#channel = channel
    this.method = hello.method as Warden['method']
    this.quota = hello.quota === 1
    this.exited = channel.exited
    this.pid = channel.pid
  }

  static async start(options: WardenOptions): Promise<Warden> {
    mkdirSync(options.dataDir, { recursive: true })
    mkdirSync(options.runDir, { recursive: true })
    const channel = new Channel(wardenBinary(options.binary), wardenArguments(options))
    return new Warden(channel, await channel.request('HELLO', { generation: GENERATION }))
  }

  /** Resolves with the fields of OK, rejects with a WardenError. Requests run concurrently. */
  request<Name extends WardenRequest>(name: Name, fields: FieldsOf[Name]): Promise<OkFields> {
    return this.#channel.request(name, fields)
  }

  /** Hangs up and waits until the warden is gone. Closing twice is fine. */
  close(): Promise<void> {
    return this.#channel.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

export function wardenBinary(binary?: string): string {
  const built = fileURLToPath(new URL('../../../../native/build/warden', import.meta.url))
  return binary ?? process.env.WARDEN_BINARY ?? built
}

function wardenArguments(options: WardenOptions): string[] {
  const args = ['--data', options.dataDir, '--run', options.runDir, '--bridge', options.bridge]
  args.push(
    '--cgroup',
    options.cgroup,
    '--uid-start',
    `${options.uidStart}`,
    '--uid-count',
    `${options.uidCount}`,
  )
  if (options.imagesDir) args.push('--images', options.imagesDir)
  if (options.method) args.push('--method', options.method)
  if (options.cells) {
    const { directory, runtime, runtimeRoot } = options.cells
    args.push('--cells', directory, '--runtime', runtime, '--runtime-root', runtimeRoot)
  }
  if (options.portable) args.push('--portable')
  return [...args, '--fd', '3']
}

const STDERR_KEPT = 4096
const KIND_NAME = new Map(Object.entries(ERROR_KIND).map(([name, code]) => [code, name as ErrorKind]))

/** The child process, its socket and the pending requests. */
class Channel {
  readonly exited: Promise<string>
  readonly pid: number
  readonly #child: ChildProcess
  readonly #socket: Duplex
  readonly #pending = new Map<number, Pending>()
  #stream = 0
  #gone: string | undefined
  #stderr = ''

  constructor(binary: string, args: string[]) {
    this.#child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], cwd: '/' })
    this.pid = this.#child.pid ?? -1
    this.#socket = this.#child.stdio[3] as Duplex
    const decoder = new FrameDecoder()
    this.#socket.on('data', (chunk: Buffer) => this.#read(decoder, chunk))
    this.#socket.on('error', () => this.#child.kill('SIGKILL'))
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-STDERR_KEPT)
    })
    this.exited = new Promise((resolve) => {
      const settle = (why: string) => resolve(this.#end(why))
      this.#child.once('error', (error) => settle(`the warden could not be started: ${error.message}`))
      this.#child.once('close', (code, signal) => settle(`the warden ended with ${signal ?? `code ${code}`}`))
    })
  }

  request<Name extends WardenRequest>(name: Name, fields: FieldsOf[Name]): Promise<OkFields> {
    return new Promise((resolve, reject) => {
      if (this.#gone !== undefined) throw new WardenError('EXITED', '', 'exit', this.#gone)
      const frame = encodeMessage(MESSAGE[name], this.#nextStream(), FIELDS[name]!, fields)
      this.#pending.set(this.#stream, { name, resolve, reject })
      this.#socket.write(frame)
    })
  }

  async close(): Promise<void> {
    this.#socket.end()
    await this.exited
  }

  #nextStream(): number {
    do this.#stream = (this.#stream + 1) >>> 0
    while (this.#pending.has(this.#stream))
    return this.#stream
  }

  /** A warden that breaks the protocol is killed; pending requests reject. */
  #read(decoder: FrameDecoder, chunk: Buffer): void {
    try {
      decoder.push(chunk, (frame) => this.#settle(frame))
    } catch {
      this.#child.kill('SIGKILL')
    }
  }

  #settle(frame: Frame): void {
    const pending = this.#pending.get(frame.stream)
    if (!pending) return
    this.#pending.delete(frame.stream)
    if (frame.type === MESSAGE.OK) pending.resolve(decodeFields(FIELDS.OK!, frame.payload))
    else pending.reject(errorOf(pending.name, decodeFields(FIELDS.ERROR!, frame.payload)))
  }

  #end(why: string): string {
    this.#gone = this.#stderr ? `${why}: ${this.#stderr.trim()}` : why
    for (const { reject } of this.#pending.values()) reject(new WardenError('EXITED', '', 'exit', this.#gone))
    this.#pending.clear()
    this.#socket.destroy()
    return this.#gone
  }
}

function errorOf(name: WardenRequest, fields: ErrorFields): WardenError {
  const { errnoName = '', stage = '', message = '' } = fields
  const kind = KIND_NAME.get((fields.kind ?? 0) as never) ?? 'SYSTEM'
  return new WardenError(
    kind,
    errnoName,
    stage,
    `${name} failed at ${stage}: ${message}${errnoName && ` (${errnoName})`}`,
  )
}
