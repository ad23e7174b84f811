// Files that are part of a call, as `files` of a create or a command. All of them go in the one request, so the call does everything
// or nothing and can be retried. That limits their size; `files.write` has no limit.
import { IsletError, LIMITS } from '@islet/contract/client'
import { abortError } from '../errors.ts'
import { base64, type Content, streamOf } from './body.ts'

export interface FileToWrite {
  /** Absolute, or relative to the directory in which commands start. */
  path: string
  /** A stream is read once, before the call. */
  content: Content
  /** Of content that is text: `base64` means the bytes that it encodes. Default: utf8. */
  encoding?: 'utf8' | 'base64'
  /** Like 0o755 or '0755'. Default: 0644. */
  mode?: number | string
  /** Default: the user that runs commands. */
  owner?: string
}

type Sent = Omit<FileToWrite, 'content'> & { content: string }

/** JSON with escapes may be longer than base64, and then base64 is sent. */
const BASE64_RATIO = 4 / 3

export async function toFiles(
  files: readonly FileToWrite[] | undefined,
  signal?: AbortSignal,
): Promise<Sent[] | undefined> {
  if (files === undefined) return undefined
  const sent: Sent[] = []
  let room = LIMITS.givenFilesBytes
  for (const file of files) {
    const { content, ...rest } = file
    if (typeof content === 'string' && rest.encoding === 'base64') {
      sent.push({ ...rest, content })
      continue
    }
    if (typeof content !== 'string' && rest.encoding !== undefined)
      throw notContent(file, 'has an encoding, which only text can have')
    const bytes = await bytesOf(file, room, signal)
    room -= bytes.length
    const isShort =
      typeof content === 'string' && JSON.stringify(content).length <= bytes.length * BASE64_RATIO + 2
    if (isShort) sent.push({ ...rest, content })
    else sent.push({ ...rest, content: base64(bytes), encoding: 'base64' })
  }
  return sent
}

async function bytesOf(
  file: FileToWrite,
  room: number,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const content: unknown = file.content
  if (typeof content === 'string') return within(new TextEncoder().encode(content), room, file)
  if (content instanceof ArrayBuffer) return within(new Uint8Array(content), room, file)
  if (ArrayBuffer.isView(content))
    return within(new Uint8Array(content.buffer, content.byteOffset, content.byteLength), room, file)
  if (content instanceof Blob) {
    if (content.size > room) throw tooMuch(file)
    return new Uint8Array(await content.arrayBuffer())
  }
  if (content instanceof ReadableStream) return readAll(content, room, { file, signal })
  if (typeof content === 'object' && content !== null && Symbol.asyncIterator in content)
    return readAll(streamOf(content as AsyncIterable<Uint8Array | string>), room, { file, signal })
  throw notContent(file, 'is not text, bytes, a Blob or a stream')
}

async function readAll(
  stream: ReadableStream<Uint8Array>,
  room: number,
  { file, signal }: { file: FileToWrite; signal: AbortSignal | undefined },
): Promise<Uint8Array> {
  const reader = stream.getReader()
  const stop = (reason?: unknown) => void reader.cancel(reason).catch(() => {})
  const abort = () => stop(abortError(signal))
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (signal?.aborted) throw abortError(signal)
      if (done) break
      if (!(value instanceof Uint8Array)) throw notContent(file, 'is a stream of something else than bytes')
      length += value.length
      if (length > room) throw tooMuch(file)
      chunks.push(value)
    }
  } catch (error) {
    stop(error)
    throw error
  } finally {
    signal?.removeEventListener('abort', abort)
  }
  const all = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    all.set(chunk, at)
    at += chunk.length
  }
  return all
}

function within(bytes: Uint8Array, room: number, file: FileToWrite): Uint8Array {
  if (bytes.length > room) throw tooMuch(file)
  return bytes
}

function tooMuch({ path }: FileToWrite): IsletError {
  return new IsletError(
    'bad_request',
    `The files of one call hold at most ${LIMITS.givenFilesBytes} bytes together, and ${path} is beyond that.`,
    { hint: 'Write large files with files.write, which takes content of any size.', details: { path } },
  )
}

function notContent({ path }: FileToWrite, problem: string): IsletError {
  return new IsletError('bad_request', `The content of ${path} ${problem}.`, { details: { path } })
}
