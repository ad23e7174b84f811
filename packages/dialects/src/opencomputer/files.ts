import { type Content, hasCode, type Sandbox } from '@islet/sdk'
import { failing } from './failed.ts'

export interface EntryInfo {
  name: string
  isDir: boolean
  /** Absolute. */
  path: string
  size: number
}

export class Filesystem {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  read(path: string): Promise<string> {
    return failing(`Failed to read ${path}`, this.#native.files.read(path))
  }

  readBytes(path: string): Promise<Uint8Array> {
    return failing(`Failed to read ${path}`, this.#native.files.readBytes(path))
  }

  /** Creates missing directories. */
  async write(path: string, content: Content): Promise<void> {
    await failing(`Failed to write ${path}`, this.#native.files.write(path, content))
  }

  async list(path = '/'): Promise<EntryInfo[]> {
    const entries = await failing(`Failed to list ${path}`, this.#native.files.list(path))
    return entries.map(({ name, type, path, sizeBytes }) => {
      return { name, isDir: type === 'directory', path, size: sizeBytes }
    })
  }

  async makeDir(path: string): Promise<void> {
    await failing(`Failed to mkdir ${path}`, this.#native.files.makeDir(path))
  }

  /** A directory with everything in it. Does nothing if the path does not exist. */
  async remove(path: string): Promise<void> {
    try {
      await this.#native.files.remove(path)
    } catch (error) {
      if (!hasCode(error, 'file_not_found')) await failing(`Failed to remove ${path}`, Promise.reject(error))
    }
  }

  /** Never throws: false also if the server cannot be reached. True for directories too. */
  async exists(path: string): Promise<boolean> {
    return this.#native.files.exists(path).catch(() => false)
  }
}
