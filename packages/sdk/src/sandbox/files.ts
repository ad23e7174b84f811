import { type BatchResult, type FileEntry, IsletError, LIMITS } from '@islet/contract/client'
import type { CallOptions, Client, Query } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, guard, type Names } from '../options.ts'
import { base64, type Content } from '../transport/body.ts'
import { Overlays } from './overlays.ts'

interface Abortable {
  signal?: AbortSignal
}

export interface ReadOptions extends Abortable {
  /** First byte; a negative one counts from the end. */
  start?: number
  /** Last byte, inclusive. */
  end?: number
}

export interface WriteOptions extends Abortable {
  mode?: number | string
  owner?: string
  /** Make missing directories. Default: true. */
  parents?: boolean
  /** Fail with `file_exists` if there is something. */
  exclusive?: boolean
}

export interface FileOperation {
  path: string
  /** A delete takes directories with all that is in them. */
  operation: 'write' | 'delete'
  /** Of a write. */
  content?: string | Uint8Array
  mode?: number | string
}

export interface UrlOptions extends Abortable {
  /** Milliseconds, or like '30m'. Default: one hour. */
  expiresIn?: number | string
}

/** What is said of a path at which there is nothing to be seen, be it that the sandbox is gone. */
export const NOT_THERE = [
  'sandbox_not_found',
  'sandbox_lost',
  'invalid_state',
  'file_not_found',
  'not_a_directory',
  'access_denied',
  'invalid_path',
  'bad_request',
] as const

/** Files of one sandbox. Paths are absolute, or relative to its working directory. Content of any size streams. */
export class Files {
  readonly overlay: Overlays
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.overlay = new Overlays(client, sandboxId)
    this.#client = client
    this.#params = { id: sandboxId }
  }

  async read(path: string, options?: ReadOptions): Promise<string> {
    return new TextDecoder().decode(await this.readBytes(path, options))
  }

  readBytes(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#client.bytes('readFile', this.#readCall(path, options))
  }

  readStream(path: string, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.#client.stream('readFile', this.#readCall(path, options))
  }

  write(path: string, content: Content, options: WriteOptions = {}): Promise<FileEntry> {
    const { signal, mode, ...rest } = options
    const query: Query = { path, mode: typeof mode === 'number' ? octal(mode) : mode, ...rest }
    return this.#client.call('writeFile', { params: this.#params, query, content, signal })
  }

  /** Everything below a directory (default: the working directory), `depth` levels deep (default: 1). */
  async list(
    path?: string,
    options: { depth?: number; limit?: number } & Abortable = {},
  ): Promise<FileEntry[]> {
    const { signal, depth, limit } = options
    const query = { path, depth, limit: limit ?? LIMITS.listEntries }
    const found = await this.#client.call('listFiles', { params: this.#params, query, signal })
    if (found.truncated && limit === undefined) {
      throw new IsletError('limit_exceeded', `There are more than ${LIMITS.listEntries} entries.`, {
        hint: 'Pass limit to get the first ones, or a smaller depth.',
      })
    }
    return found.entries
  }

  stat(path: string, options: { follow?: boolean } & Abortable = {}): Promise<FileEntry> {
    const { signal, follow } = options
    return this.#client.call('statFile', { params: this.#params, query: { path, follow }, signal })
  }

  /** False for whatever cannot be seen at the path, also one that cannot be a path. */
  async exists(path: string, options: Abortable = {}): Promise<boolean> {
    try {
      await this.stat(path, { ...options, follow: false })
      return true
    } catch (error) {
      if (hasCode(error, ...NOT_THERE)) return false
      throw error
    }
  }

  /** With its parents; content if it is there already, unless `parents` is false. */
  makeDir(
    path: string,
    options: { parents?: boolean; mode?: number | string; owner?: string } & Abortable = {},
  ): Promise<FileEntry> {
    const { signal, ...rest } = options
    return this.#client.call('makeDirectory', { params: this.#params, body: { path, ...rest }, signal })
  }

  move(from: string, to: string, options: { overwrite?: boolean } & Abortable = {}): Promise<FileEntry> {
    const { signal, overwrite } = options
    return this.#client.call('movePath', { params: this.#params, body: { from, to, overwrite }, signal })
  }

  /** Files and whole directories. */
  copy(from: string, to: string, options: { overwrite?: boolean } & Abortable = {}): Promise<FileEntry> {
    const { signal, overwrite } = options
    const body = { from, to, overwrite, recursive: true }
    return this.#client.call('copyPath', { params: this.#params, body, signal })
  }

  /** A file, or a directory with all that is in it unless `recursive` is false. */
  async remove(path: string, options: { recursive?: boolean } & Abortable = {}): Promise<void> {
    const { signal, recursive = true } = options
    await this.#client.call('removeFile', { params: this.#params, query: { path, recursive }, signal })
  }

  /** What is in a directory, as a tar: gzipped unless `gzip` is false. */
  readArchive(
    path: string,
    options: { gzip?: boolean } & Abortable = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const { signal, gzip } = options
    return this.#client.stream('readArchive', { params: this.#params, query: { path, gzip }, signal })
  }

  /** Unpacks a tar, plain or gzip, into a directory. */
  writeArchive(
    path: string,
    archive: Content,
    options: { owner?: string } & Abortable = {},
  ): Promise<{ count: number }> {
    const { signal, owner } = options
    const query = { path, owner }
    return this.#client.call('writeArchive', { params: this.#params, query, content: archive, signal })
  }

  /**
   * Writes and deletes many files, in the order of their paths; of two operations on a path the last one counts. Each has
   * its own result, and one that fails does not stop the others.
   */
  async batchWrite(files: readonly FileOperation[], options: Abortable = {}): Promise<BatchResult[]> {
    const body = { files: files.map(toOperation) }
    return (await this.#client.call('batchFiles', { params: this.#params, body, ...options })).results
  }

  /** A URL that downloads the file with GET, without a key, for a while. */
  downloadUrl(path: string, options: UrlOptions = {}): Promise<string> {
    return this.#sign('GET', path, options)
  }

  /** A URL that uploads the file with PUT, without a key, for a while. */
  uploadUrl(path: string, options: UrlOptions = {}): Promise<string> {
    return this.#sign('PUT', path, options)
  }

  async #sign(method: 'GET' | 'PUT', path: string, { signal, expiresIn }: UrlOptions): Promise<string> {
    const body = { path, method, expiresIn }
    return (await this.#client.call('signFile', { params: this.#params, body, signal })).url
  }

  #readCall(path: string, options: ReadOptions): CallOptions<'readFile'> {
    const { signal } = options
    return { params: this.#params, query: { path }, headers: rangeHeader(options), signal }
  }
}

function toOperation({ content, ...rest }: FileOperation) {
  if (!(content instanceof Uint8Array)) return { ...rest, content }
  return { ...rest, content: base64(content), encoding: 'base64' as const }
}

function rangeHeader({ start, end }: ReadOptions): Record<string, string> {
  if (start === undefined && end === undefined) return {}
  if (start !== undefined && start < 0) return { Range: `bytes=${start}` }
  return { Range: `bytes=${start ?? 0}-${end ?? ''}` }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}

const READ: Names<ReadOptions> = { start: 1, end: 1, signal: 1 }
const OVERWRITE = { overwrite: 1, signal: 1 } as const
const URL_OPTIONS: Names<UrlOptions> = { expiresIn: 1, signal: 1 }

guard(Files.prototype, 'sandbox.files', {
  read: [null, READ],
  readBytes: [null, READ],
  readStream: [null, READ],
  write: [null, null, { mode: 1, owner: 1, parents: 1, exclusive: 1, signal: 1 }],
  list: [null, { depth: 1, limit: 1, signal: 1 }],
  stat: [null, { follow: 1, signal: 1 }],
  exists: [null, ABORTABLE],
  makeDir: [null, { parents: 1, mode: 1, owner: 1, signal: 1 }],
  move: [null, null, OVERWRITE],
  copy: [null, null, OVERWRITE],
  remove: [null, { recursive: 1, signal: 1 }],
  readArchive: [null, { gzip: 1, signal: 1 }],
  writeArchive: [null, null, { owner: 1, signal: 1 }],
  batchWrite: [null, ABORTABLE],
  downloadUrl: [null, URL_OPTIONS],
  uploadUrl: [null, URL_OPTIONS],
})
