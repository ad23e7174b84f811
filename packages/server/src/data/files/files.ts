// Files of a sandbox, through its guest. Paths are resolved inside the sandbox; no host path is ever made from them.
import { join, posix } from 'node:path'
import { type FileEntry, type FileList, IsletError, newId } from '@islet/contract'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { SandboxRecord } from '../../db/sandboxes.ts'
import type { Guest, WriteOptions } from '../../guest/guest.ts'
import { Limiter, LimiterOf } from '../../lib/limiter.ts'
import { Locks } from '../../lib/locks.ts'
import type { Chunks } from '../../wire/chunks.ts'
import { release, type Told } from '../output/kept-bytes.ts'
import { ListedFiles, toFileEntry } from './listed-files.ts'

const LOOKUPS_AT_ONCE = 16
/** Lists of one sandbox that are read from the guest at the same time; sending them to clients takes longer. */
const LISTS_AT_ONCE = 2

interface FilesOptions {
  /** For lists that wait to be sent. */
  dir: string
  /** False while the disk is too full to write. */
  hasRoom(): boolean
}

/** Paths may be relative to the sandbox's working directory. New files belong to its user unless `owner` says otherwise. */
export class Files {
  readonly #sandboxes: Sandboxes
  readonly #options: FilesOptions
  readonly #locks = new Locks()
  readonly #lists = new LimiterOf(LISTS_AT_ONCE)

  constructor(sandboxes: Sandboxes, options: FilesOptions) {
    this.#sandboxes = sandboxes
    this.#options = options
  }

  /** Runs the work alone among all callers that lock one of these files, by any path that leads to it. */
  async exclusively<T>(sandboxId: string, paths: readonly string[], work: () => Promise<T>): Promise<T> {
    const { guest, resolve } = await this.#in(sandboxId)
    const limiter = new Limiter(LOOKUPS_AT_ONCE)
    const named = [...new Set(paths.map(resolve))]
    const real = await Promise.all(
      named.map((path) => limiter.run(() => guest.realpath(path).catch(() => path))),
    )
    return this.#locks.run(
      [...named, ...real].map((path) => `${sandboxId}:${path}`),
      work,
    )
  }

  /** The absolute path; symlinks are not followed. */
  resolve(sandboxId: string, path: string): string {
    return posix.resolve(this.#sandboxes.record(sandboxId).workdir, path)
  }

  async stat(sandboxId: string, path: string, options: { follow: boolean }): Promise<FileEntry> {
    const { guest, resolve } = await this.#in(sandboxId)
    return toFileEntry(resolve(path), await guest.stat(resolve(path), options))
  }

  async list(
    sandboxId: string,
    path: string | undefined,
    options: { depth: number; limit: number; signal?: AbortSignal },
  ): Promise<Told<FileList>> {
    const { guest, resolve } = await this.#in(sandboxId)
    const directory = resolve(path ?? '.')
    const { dir, hasRoom } = this.#options
    const file = join(dir, `${newId('request')}.answer`)
    const hold = this.#sandboxes.held.open(sandboxId)
    const entries = new ListedFiles(directory, { path: file, hold, hasRoom })
    try {
      const { truncated } = await this.#lists.run(sandboxId, () =>
        guest.list(directory, { ...options, sink: entries }),
      )
      return { path: directory, entries, truncated }
    } catch (error) {
      release(entries)
      throw error
    }
  }

  /** `start` and `end` as in an HTTP range, end inclusive; a negative start counts from the end. */
  async read(
    sandboxId: string,
    path: string,
    options: { start?: number; end?: number; signal?: AbortSignal } = {},
  ): Promise<{ entry: FileEntry; start: number; length: number | undefined; body: Chunks<Buffer> }> {
    const { guest, resolve } = await this.#in(sandboxId)
    const absolute = resolve(path)
    let { start = 0 } = options
    const { end, signal } = options
    if (start < 0) start = Math.max(0, (await guest.stat(absolute, { follow: true })).sizeBytes + start)
    const wanted = end === undefined ? undefined : end - start + 1
    const { entry, body } = await guest.read(absolute, { offset: start, length: wanted, signal })
    // Files of /proc and /sys have size 0: their length is known only at their end.
    if (entry.sizeBytes === 0 && start === 0 && wanted === undefined)
      return { entry: toFileEntry(absolute, entry), start, length: undefined, body }
    const length = Math.min(wanted ?? Number.MAX_SAFE_INTEGER, Math.max(0, entry.sizeBytes - start))
    if (length === 0 && (start > 0 || wanted !== undefined)) {
      await body[Symbol.asyncIterator]().return?.()
      throw new IsletError('range_not_satisfiable', `${absolute} has ${entry.sizeBytes} bytes.`, {
        details: { sizeBytes: entry.sizeBytes },
      })
    }
    return { entry: toFileEntry(absolute, entry), start, length, body: new Exactly(body, length) }
  }

  async write(
    sandboxId: string,
    path: string,
    body: Chunks,
    options: Omit<WriteOptions, 'newOwner'> = {},
  ): Promise<FileEntry> {
    const { guest, resolve, record } = await this.#in(sandboxId)
    const { owner, parents = true, ...rest } = options
    const absolute = resolve(path)
    const entry = await guest.write(absolute, body, {
      ...rest,
      parents,
      owner,
      newOwner: record.user || undefined,
    })
    return toFileEntry(absolute, entry)
  }

  async remove(
    sandboxId: string,
    path: string,
    options: { recursive: boolean; signal?: AbortSignal },
  ): Promise<void> {
    const { guest, resolve } = await this.#in(sandboxId)
    const absolute = resolve(path)
    if (absolute === '/') throw new IsletError('invalid_path', 'The root directory cannot be removed.')
    await guest.remove(absolute, options)
  }

  async mkdir(
    sandboxId: string,
    path: string,
    options: { parents: boolean; mode?: number; owner?: string },
  ): Promise<FileEntry> {
    const { guest, resolve, record } = await this.#in(sandboxId)
    const absolute = resolve(path)
    await guest.mkdir(absolute, { ...options, owner: options.owner ?? (record.user || undefined) })
    return toFileEntry(absolute, await guest.stat(absolute, { follow: true }))
  }

  async move(
    sandboxId: string,
    from: string,
    to: string,
    options: { overwrite: boolean },
  ): Promise<FileEntry> {
    const { guest, resolve } = await this.#in(sandboxId)
    await guest.move(resolve(from), resolve(to), options)
    return toFileEntry(resolve(to), await guest.stat(resolve(to), { follow: false }))
  }

  async copy(
    sandboxId: string,
    from: string,
    to: string,
    options: { recursive: boolean; overwrite: boolean; signal?: AbortSignal },
  ): Promise<FileEntry> {
    const { guest, resolve } = await this.#in(sandboxId)
    await guest.copy(resolve(from), resolve(to), options)
    return toFileEntry(resolve(to), await guest.stat(resolve(to), { follow: false }))
  }

  /** An uncompressed tar. */
  async archive(
    sandboxId: string,
    path: string,
    options: { signal?: AbortSignal } = {},
  ): Promise<Chunks<Buffer>> {
    const { guest, resolve } = await this.#in(sandboxId)
    return guest.tarOut(resolve(path), options)
  }

  async extract(
    sandboxId: string,
    path: string,
    body: AsyncIterable<Uint8Array>,
    options: { owner?: string; signal?: AbortSignal } = {},
  ): Promise<{ count: number }> {
    const { guest, resolve, record } = await this.#in(sandboxId)
    const owner = options.owner ?? (record.user || undefined)
    await guest.mkdir(resolve(path), { parents: true, owner })
    return guest.tarIn(resolve(path), body, { ...options, owner })
  }

  async #in(
    sandboxId: string,
  ): Promise<{ guest: Guest; record: SandboxRecord; resolve: (path: string) => string }> {
    const { machine, record } = await this.#sandboxes.running(sandboxId)
    return { guest: machine.guest, record, resolve: (path) => posix.resolve(record.workdir, path) }
  }
}

/** Exactly the announced length: a file that grows while it is read is cut, one that shrinks is an error. */
class Exactly implements Chunks<Buffer>, AsyncIterableIterator<Buffer> {
  readonly #body: Chunks<Buffer>
  readonly #chunks: AsyncIterator<Buffer>
  #left: number

  constructor(body: Chunks<Buffer>, length: number) {
    this.#body = body
    this.#chunks = body[Symbol.asyncIterator]()
    this.#left = length
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Buffer>> {
    if (this.#left === 0) return this.return()
    const { done, value: chunk } = await this.#chunks.next()
    if (done) throw new IsletError('conflict', 'The file became shorter while it was read.')
    const piece = chunk.length > this.#left ? chunk.subarray(0, this.#left) : chunk
    this.#left -= piece.length
    return { done: false, value: piece }
  }

  async return(): Promise<IteratorResult<Buffer>> {
    await this.#chunks.return?.()
    return { done: true, value: undefined }
  }

  release(chunk: Buffer): void {
    this.#body.release?.(chunk)
  }
}
