import { type BatchResult, type FileEntry, IsletError, LIMITS } from '@islet/contract/client'
import type { CallOptions, Query } from '../client/client.ts'
import { SandboxPart } from '../client/part.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'
import { base64, type Content } from '../transport/body.ts'
import { Overlays } from './overlays.ts'

export interface ReadOptions extends Abortable {
  /** First byte. A negative number reads the last bytes of the file; `end` is not allowed with it. */
  start?: number
  /** Last byte, inclusive. */
  end?: number
}

export interface WriteOptions extends Abortable {
  mode?: number | string
  owner?: string
  /** Create missing directories. Default: true. */
  parents?: boolean
  /** Fail with `file_exists` if the path exists. Default: false. */
  exclusive?: boolean
}

export interface FileOperation {
  path: string
  /** `delete` also removes directories, with everything in them. */
  operation: 'write' | 'delete'
  /** Needed for `write`. */
  content?: string | Uint8Array
  mode?: number | string
}

export interface UrlOptions extends Abortable {
  /** Milliseconds, or like '30m'. Default: one hour. */
  expiresIn?: number | string
}

/** The codes that mean: nothing can be seen at this path, or the sandbox is gone. */
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

/** Files of one sandbox. Paths are absolute, or relative to its working directory. Content may have any size. */
export class Files extends SandboxPart {
  readonly overlay = new Overlays(this.client, this.params.id)

  async read(path: string, options?: ReadOptions): Promise<string> {
    return new TextDecoder().decode(await this.readBytes(path, options))
  }

  async readBytes(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.client.bytes('readFile', this.#readCall(path, options))
  }

  async readStream(path: string, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.client.stream('readFile', this.#readCall(path, options))
  }

  write(path: string, content: Content, options: WriteOptions = {}): Promise<FileEntry> {
    const { signal, mode, ...rest } = options
    const query: Query = { path, mode: typeof mode === 'number' ? octal(mode) : mode, ...rest }
    return this.client.call('writeFile', { params: this.params, query, content, signal })
  }

  /** The entries below a directory (default: the working directory), `depth` levels deep (default: 1). */
  async list(
    path?: string,
    options: { depth?: number; limit?: number } & Abortable = {},
  ): Promise<FileEntry[]> {
    const { signal, depth, limit } = options
    const query = { path, depth, limit: limit ?? LIMITS.listEntries }
    const found = await this.client.call('listFiles', { params: this.params, query, signal })
    if (found.truncated && limit === undefined) {
      throw new IsletError('limit_exceeded', `There are more than ${LIMITS.listEntries} entries.`, {
        hint: 'Pass limit to get only the first entries, or a smaller depth.',
      })
    }
    return found.entries
  }

  stat(path: string, options: { follow?: boolean } & Abortable = {}): Promise<FileEntry> {
    const { signal, follow } = options
    return this.client.call('statFile', { params: this.params, query: { path, follow }, signal })
  }

  /** False if nothing can be seen at the path, also if the path is not valid. */
  async exists(path: string, options: Abortable = {}): Promise<boolean> {
    try {
      await this.stat(path, { ...options, follow: false })
      return true
    } catch (error) {
      if (hasCode(error, ...NOT_THERE)) return false
      throw error
    }
  }

  /** Creates missing parents and succeeds if the directory exists, unless `parents` is false. */
  makeDir(
    path: string,
    options: { parents?: boolean; mode?: number | string; owner?: string } & Abortable = {},
  ): Promise<FileEntry> {
    const { signal, ...rest } = options
    return this.client.call('makeDirectory', { params: this.params, body: { path, ...rest }, signal })
  }

  move(from: string, to: string, options: { overwrite?: boolean } & Abortable = {}): Promise<FileEntry> {
    const { signal, overwrite } = options
    return this.client.call('movePath', { params: this.params, body: { from, to, overwrite }, signal })
  }

  /** Copies a file, or a directory with everything in it. */
  copy(from: string, to: string, options: { overwrite?: boolean } & Abortable = {}): Promise<FileEntry> {
    const { signal, overwrite } = options
    const body = { from, to, overwrite, recursive: true }
    return this.client.call('copyPath', { params: this.params, body, signal })
  }

  /** Removes a file, or a directory; with everything in it, unless `recursive` is false. */
  async remove(path: string, options: { recursive?: boolean } & Abortable = {}): Promise<void> {
    const { signal, recursive = true } = options
    await this.client.call('removeFile', { params: this.params, query: { path, recursive }, signal })
  }

  /** The content of a directory as a tar, compressed with gzip unless `gzip` is false. */
  readArchive(
    path: string,
    options: { gzip?: boolean } & Abortable = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const { signal, gzip } = options
    return this.client.stream('readArchive', { params: this.params, query: { path, gzip }, signal })
  }

  /** Unpacks a tar, plain or gzip, into a directory. */
  writeArchive(
    path: string,
    archive: Content,
    options: { owner?: string } & Abortable = {},
  ): Promise<{ count: number }> {
    const { signal, owner } = options
    const query = { path, owner }
    return this.client.call('writeArchive', { params: this.params, query, content: archive, signal })
  }

  /**
   * Writes and deletes many files, sorted by path; the last operation on a path wins. Each operation has its own result;
   * a failure does not stop the others.
   */
  async batchWrite(files: readonly FileOperation[], options: Abortable = {}): Promise<BatchResult[]> {
    const body = { files: files.map(toOperation) }
    return (await this.client.call('batchFiles', { params: this.params, body, ...options })).results
  }

  /** A URL that downloads the file with GET and needs no key, until it expires. */
  downloadUrl(path: string, options: UrlOptions = {}): Promise<string> {
    return this.#sign('GET', path, options)
  }

  /** A URL that uploads the file with PUT and needs no key, until it expires. */
  uploadUrl(path: string, options: UrlOptions = {}): Promise<string> {
    return this.#sign('PUT', path, options)
  }

  async #sign(method: 'GET' | 'PUT', path: string, { signal, expiresIn }: UrlOptions): Promise<string> {
    const body = { path, method, expiresIn }
    return (await this.client.call('signFile', { params: this.params, body, signal })).url
  }

  #readCall(path: string, options: ReadOptions): CallOptions<'readFile'> {
    const { signal } = options
    return { params: this.params, query: { path }, headers: rangeHeader(options), signal }
  }
}

function toOperation({ content, ...rest }: FileOperation) {
  if (!(content instanceof Uint8Array)) return { ...rest, content }
  return { ...rest, content: base64(content), encoding: 'base64' as const }
}

/** The server ignores a range that is not valid and sends the whole file, so the range is checked here. */
function rangeHeader({ start = 0, end }: ReadOptions): Record<string, string> {
  if (start === 0 && end === undefined) return {}
  const given = `start ${start}${end === undefined ? '' : ` and end ${end}`}`
  if (start < 0 && end !== undefined)
    throw new IsletError('bad_request', `A negative start cannot be combined with end; given: ${given}.`, {
      hint: 'A negative start reads up to the end of the file: leave end out, or count start from the beginning.',
    })
  if (!Number.isSafeInteger(start) || (end !== undefined && !(Number.isSafeInteger(end) && end >= start)))
    throw new IsletError('bad_request', `This is not a range of bytes: ${given}.`, {
      hint: 'start and end are whole numbers, and end, the last byte, is not before start.',
    })
  return { Range: start < 0 ? `bytes=${start}` : `bytes=${start}-${end ?? ''}` }
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
