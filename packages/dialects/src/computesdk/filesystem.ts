import {
  hasCode,
  type OverlayInfo as NativeOverlay,
  type OverlayOptions,
  type Overlays,
  type Sandbox,
  type WaitOptions,
} from '@islet/sdk'
import { reworded } from '../reword.ts'

export interface FileEntry {
  name: string
  type: 'file' | 'directory'
  /** Of files. */
  size?: number
  modified?: Date
}

export type OverlayInfo = NativeOverlay
export type OverlayManager = Overlays
export type { OverlayOptions, WaitOptions }

export class FileSystem {
  readonly overlay: OverlayManager
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
    this.overlay = native.files.overlay
  }

  readFile(path: string): Promise<string> {
    return naming(path, 'File', this.#native.files.read(path))
  }

  /** Creates missing directories. */
  async writeFile(path: string, content: string): Promise<void> {
    await this.#native.files.write(path, content)
  }

  async mkdir(path: string): Promise<void> {
    await this.#native.files.makeDir(path)
  }

  async readdir(path: string): Promise<FileEntry[]> {
    const entries = await naming(path, 'Directory', this.#native.files.list(path))
    return entries.map(({ name, type, sizeBytes, modifiedAt }) => ({
      name,
      ...(type === 'directory' ? { type } : { type: 'file', size: sizeBytes }),
      modified: new Date(modifiedAt),
    }))
  }

  /** Never throws: false also if the server cannot be reached. */
  exists(path: string): Promise<boolean> {
    return this.#native.files.exists(path).catch(() => false)
  }

  async remove(path: string): Promise<void> {
    await naming(path, 'File', this.#native.files.remove(path))
  }
}

/** "File not found: /x", as callers know it. */
export async function naming<T>(path: string, kind: 'File' | 'Directory', work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw hasCode(error, 'file_not_found') ? reworded(error, () => `${kind} not found: ${path}`) : error
  }
}
