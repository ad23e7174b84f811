import type { FileEntry, FileOperation, Sandbox } from '@islet/sdk'
import { naming } from './filesystem.ts'

export interface FileInfo {
  name: string
  /** Absolute. */
  path: string
  size: number
  is_dir: boolean
  /** ISO 8601. */
  modified_at: string
}

export interface BatchWriteResult {
  path: string
  success: boolean
  error?: string
  /** Of a write that succeeded. */
  file?: FileInfo
}

export class FileManager {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  /** Creates missing directories, and overwrites a file. */
  async create(path: string, content = ''): Promise<FileInfo> {
    return toInfo(await this.#native.files.write(path, content))
  }

  async list(path = '/'): Promise<FileInfo[]> {
    return (await naming(path, 'Directory', this.#native.files.list(path))).map(toInfo)
  }

  retrieve(path: string): Promise<string> {
    return naming(path, 'File', this.#native.files.read(path))
  }

  async destroy(path: string): Promise<void> {
    await naming(path, 'File', this.#native.files.remove(path))
  }

  /** Sorted by path; the last operation on a path wins. A failure does not stop the others. */
  async batchWrite(files: readonly FileOperation[]): Promise<BatchWriteResult[]> {
    const results = await this.#native.files.batchWrite(files)
    return results.map(({ path, success, error, file }) => ({
      path,
      success,
      ...(error !== undefined && { error }),
      ...(file && { file: toInfo(file) }),
    }))
  }

  /** Never throws: false also if the server cannot be reached. */
  exists(path: string): Promise<boolean> {
    return this.#native.files.exists(path).catch(() => false)
  }
}

function toInfo({ name, path, sizeBytes, type, modifiedAt }: FileEntry): FileInfo {
  return { name, path, size: sizeBytes, is_dir: type === 'directory', modified_at: modifiedAt }
}
