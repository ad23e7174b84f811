// The stdin of a command from a stream of Node or of the Web, or from an iterable. Each chunk is read when the one before has reached the
// process. When the command ends first, a stream of Node is paused and stays open; others are told that no more is read.
import { IsletError } from '@islet/contract/client'
import { abortError, untilAborted } from '../errors.ts'

/** The part of a Readable of Node that is used. */
interface NodeReadable {
  readonly readableEnded: boolean
  readonly destroyed: boolean
  readonly errored?: Error | null
  on(event: string, listener: (value: never) => void): unknown
  removeListener(event: string, listener: (value: never) => void): unknown
  pause(): unknown
  resume(): unknown
}

export type InputSource = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>

type Take = (bytes: Uint8Array) => Promise<void>

const encoder = new TextEncoder()

function toBytes(chunk: Uint8Array | string): Uint8Array {
  if (typeof chunk === 'string') return encoder.encode(chunk)
  if (chunk instanceof Uint8Array) return chunk
  throw new IsletError('bad_request', 'stdin gave something that is neither text nor bytes.')
}

export function isSource(stdin: unknown): stdin is InputSource {
  if (typeof stdin !== 'object' || stdin === null || stdin instanceof Uint8Array) return false
  return 'getReader' in stdin || Symbol.asyncIterator in stdin
}

/** Resolves at the end of the source. Rejects with its error, with that of `take`, or when `stop` aborts. */
export async function pump(source: InputSource, take: Take, stop: AbortSignal): Promise<void> {
  const readable = source as InputSource & Partial<NodeReadable>
  if (typeof readable.pause === 'function' && typeof readable.on === 'function')
    return pumpReadable(readable as unknown as NodeReadable, take, stop)
  const iterator = 'getReader' in source ? iteratorOf(source) : source[Symbol.asyncIterator]()
  let isAtEnd = false
  try {
    for (;;) {
      const { done, value } = await untilAborted(iterator.next(), stop)
      isAtEnd = done === true
      if (done) return
      await take(toBytes(value))
    }
  } finally {
    // Not awaited: a source that never gives its next chunk would keep it waiting.
    if (!isAtEnd) iterator.return?.()?.then(undefined, () => {})
  }
}

/** Not the stream's own iterator, which some browsers lack. */
function iteratorOf(stream: ReadableStream<Uint8Array>): AsyncIterator<Uint8Array> {
  const reader = stream.getReader()
  return {
    next: () => reader.read() as Promise<IteratorResult<Uint8Array>>,
    return: async () => {
      await reader.cancel()
      return { done: true, value: undefined }
    },
  }
}

function pumpReadable(readable: NodeReadable, take: Take, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      for (const [event, listener] of Object.entries(listeners)) readable.removeListener(event, listener)
      stop.removeEventListener('abort', onStop)
      readable.pause()
    }
    const fail = (error: unknown): void => {
      leave()
      reject(error)
    }
    const finish = (): void => {
      leave()
      resolve()
    }
    const onStop = (): void => fail(abortError(stop))
    // The end may be told while the last chunk is on its way.
    let taken = Promise.resolve()
    const atEnd = () => void taken.then(finish, () => {})
    const listeners = {
      data: (chunk: Uint8Array | string): void => {
        readable.pause()
        taken = taken.then(async () => take(toBytes(chunk)))
        taken.then(() => stop.aborted || readable.resume(), fail)
      },
      end: atEnd,
      close: atEnd,
      error: fail,
    }
    if (stop.aborted) return onStop()
    if (readable.errored) return fail(readable.errored)
    if (readable.readableEnded || readable.destroyed) return finish()
    stop.addEventListener('abort', onStop, { once: true })
    for (const [event, listener] of Object.entries(listeners)) readable.on(event, listener)
    readable.resume()
  })
}
