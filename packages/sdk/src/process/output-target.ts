// Where the output of a command goes: a handler, a stream of Node or a stream of the Web. Each chunk waits until the one before is taken,
// so a slow target slows the command. A stream stays open: it belongs to the caller.
import { IsletError } from '@islet/contract/client'
import type { Channel } from './output-cursor.ts'

/** The part of a Writable of Node that is used. */
export interface NodeWritable {
  write(chunk: Uint8Array, done: (error?: Error | null) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

export interface OutputOfRun {
  /** A returned promise delays the next chunk and slows the command; an error kills the command. */
  onStdout?(data: Uint8Array): void | Promise<void>
  onStderr?(data: Uint8Array): void | Promise<void>
  /** Gets the output as it comes, and stays open. If it fails, the command is killed. */
  stdout?: NodeWritable | WritableStream<Uint8Array>
  stderr?: NodeWritable | WritableStream<Uint8Array>
}

interface Target {
  write(bytes: Uint8Array): Promise<void>
  release(): void
}

export class OutputTargets {
  readonly #targets: Record<Channel, Target | undefined>
  readonly #options: OutputOfRun

  /** `onError`: a stream failed between two chunks. Throws if a stream cannot be written to. */
  constructor(options: OutputOfRun, onError: (error: unknown) => void) {
    this.#options = options
    const stdout = open(options.stdout, 'stdout', onError)
    try {
      const isSame = options.stderr !== undefined && options.stderr === options.stdout
      this.#targets = { stdout, stderr: isSame ? stdout : open(options.stderr, 'stderr', onError) }
    } catch (error) {
      stdout?.release()
      throw error
    }
  }

  /** Undefined: it is taken. */
  write(channel: Channel, bytes: Uint8Array): void | Promise<void> {
    const { onStdout, onStderr } = this.#options
    const handled = channel === 'stdout' ? onStdout?.(bytes) : onStderr?.(bytes)
    const target = this.#targets[channel]
    if (!target) return handled
    if (handled === undefined) return target.write(bytes)
    return Promise.resolve(handled).then(() => target.write(bytes))
  }

  release(): void {
    for (const target of new Set(Object.values(this.#targets))) target?.release()
  }
}

function open(
  stream: OutputOfRun['stdout'],
  name: Channel,
  onError: (error: unknown) => void,
): Target | undefined {
  if (stream === undefined) return undefined
  if ('getWriter' in stream) return openWeb(stream, name)
  if (typeof stream?.write !== 'function' || typeof stream.on !== 'function')
    throw new IsletError('bad_request', `${name} is neither a Writable of Node nor a WritableStream.`)
  // Without a listener the error of a stream ends the program.
  stream.on('error', onError)
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(error) : resolve()))
      }),
    release: () => stream.removeListener('error', onError),
  }
}

function openWeb(stream: WritableStream<Uint8Array>, name: Channel): Target {
  if (stream.locked)
    throw new IsletError('bad_request', `${name} is locked: something else writes to that stream.`, {
      hint: 'Release its writer first, or pass another stream.',
    })
  const writer = stream.getWriter()
  writer.closed.catch(() => {}) // the next write reports it
  return { write: (bytes) => writer.write(bytes), release: () => writer.releaseLock() }
}

export const OUTPUT = { onStdout: 1, onStderr: 1, stdout: 1, stderr: 1 } as const
