// A flat map of files. `/zero/N` is a file of N zero bytes that is never held; what is written to `/null` is counted.
import { type FileEntry, type FileList, IsletError } from '@islet/contract'
import type { FileService } from '../../data/data.ts'
import type { MemoryControl } from './control.ts'

type ReadOptions = { start?: number; end?: number; signal?: AbortSignal }

const MODIFIED = '2026-01-02T03:04:05.000Z'
const ZEROS = Buffer.alloc(256 * 1024)

export class MemoryFiles implements FileService {
  readonly #control: MemoryControl
  readonly content = new Map<string, Buffer>()
  readonly calls: unknown[] = []
  nullBytes = 0
  abortedWrites = 0
  openReads = 0

  constructor(control: MemoryControl) {
    this.#control = control
  }

  async stat(sandboxId: string, path: string): Promise<FileEntry> {
    this.#control.get(sandboxId)
    return entryOf(path, this.#size(path))
  }

  async list(
    sandboxId: string,
    path: string | undefined,
    options: { depth: number; limit: number },
  ): Promise<FileList> {
    this.#control.get(sandboxId)
    this.calls.push({ list: path, depth: options.depth, limit: options.limit })
    const entries = [...this.content].map(([name, bytes]) => entryOf(name, bytes.length))
    return { path: path ?? '/', entries, truncated: false }
  }

  async read(sandboxId: string, path: string, options: ReadOptions = {}) {
    this.#control.get(sandboxId)
    const size = this.#size(path)
    const start = (options.start ?? 0) < 0 ? Math.max(0, size + options.start!) : (options.start ?? 0)
    if (start > 0 && start >= size) throw new IsletError('range_not_satisfiable')
    const length = Math.min(size - 1, options.end ?? size - 1) - start + 1
    const content = this.content.get(path)
    const body = content ? [content.subarray(start, start + length)] : zeros(length)
    return { entry: entryOf(path, size), start, length, body: this.#counted(body, options.signal) }
  }

  async write(sandboxId: string, path: string, body: AsyncIterable<Uint8Array>, options: object = {}) {
    this.#control.get(sandboxId)
    const { signal, ...shown } = options as { signal?: AbortSignal }
    this.calls.push({ write: path, ...shown })
    if (path === '/directory') throw new IsletError('is_a_directory')
    const chunks: Uint8Array[] = []
    try {
      for await (const chunk of body) {
        signal?.throwIfAborted()
        if (path === '/null') this.nullBytes += chunk.length
        else chunks.push(chunk)
      }
    } catch (error) {
      this.abortedWrites++
      throw error
    }
    if (path !== '/null') this.content.set(path, Buffer.concat(chunks))
    return entryOf(path, path === '/null' ? this.nullBytes : this.content.get(path)!.length)
  }

  async remove(sandboxId: string, path: string, options: { recursive: boolean }): Promise<void> {
    await this.stat(sandboxId, path)
    this.calls.push({ remove: path, recursive: options.recursive })
    this.content.delete(path)
  }

  async mkdir(sandboxId: string, path: string, options: object): Promise<FileEntry> {
    this.#control.get(sandboxId)
    this.calls.push({ mkdir: path, ...options })
    return { ...entryOf(path, 0), type: 'directory' }
  }

  async move(sandboxId: string, from: string, to: string): Promise<FileEntry> {
    const copied = await this.copy(sandboxId, from, to)
    this.content.delete(from)
    return copied
  }

  async copy(sandboxId: string, from: string, to: string): Promise<FileEntry> {
    const { sizeBytes } = await this.stat(sandboxId, from)
    this.content.set(to, this.content.get(from)!)
    return entryOf(to, sizeBytes)
  }

  async archive(sandboxId: string, path: string): Promise<AsyncIterable<Buffer>> {
    const { body } = await this.read(sandboxId, path)
    return body
  }

  async extract(sandboxId: string, path: string, body: AsyncIterable<Uint8Array>) {
    await this.write(sandboxId, path, body)
    return { count: 1 }
  }

  async *#counted(chunks: Iterable<Buffer>, signal?: AbortSignal): AsyncGenerator<Buffer> {
    this.openReads++
    try {
      for (const chunk of chunks) {
        signal?.throwIfAborted()
        yield chunk
      }
    } finally {
      this.openReads--
    }
  }

  #size(path: string): number {
    const zero = /^\/zero\/(\d+)$/.exec(path)
    const size = zero ? Number(zero[1]) : this.content.get(path)?.length
    if (size === undefined) throw new IsletError('file_not_found')
    return size
  }
}

function* zeros(length: number): Generator<Buffer> {
  for (let left = length; left > 0; left -= ZEROS.length)
    yield left < ZEROS.length ? ZEROS.subarray(0, left) : ZEROS
}

function entryOf(path: string, sizeBytes: number): FileEntry {
  const name = path.split('/').at(-1)!
  return { name, path, type: 'file', sizeBytes, mode: '0644', uid: 1000, gid: 1000, modifiedAt: MODIFIED }
}
