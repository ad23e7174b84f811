import { SandboxPart } from '../client/part.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { NOT_THERE } from './files.ts'

/** How many characters of keys one removal may have in its URL. */
const KEYS_LENGTH = 4096

/** The .env files of one sandbox. Paths are relative to its working directory. */
export class EnvFiles extends SandboxPart {
  /** All variables of the file. Code `file_not_found` if there is no such file. */
  async retrieve(file: string, options: Abortable = {}): Promise<Record<string, string>> {
    const call = { params: this.params, query: { file }, ...options }
    return (await this.client.call('readEnvFile', call)).variables
  }

  /** Sets these variables and keeps the rest of the file; creates a missing file. Returns the keys that were set. */
  async update(file: string, variables: Record<string, string>, options: Abortable = {}): Promise<string[]> {
    const call = { params: this.params, query: { file }, body: { variables }, ...options }
    return (await this.client.call('updateEnvFile', call)).keys
  }

  /** Removes these variables from the file. Returns the keys that were there. */
  async remove(file: string, keys: readonly string[], options: Abortable = {}): Promise<string[]> {
    const removed: string[] = []
    for (const key of inParts(keys)) {
      const call = { params: this.params, query: { file, key }, ...options }
      removed.push(...(await this.client.call('removeEnvKeys', call)).keys)
    }
    return removed
  }

  /** False unless a regular file can be seen at the path. */
  async exists(file: string, options: Abortable = {}): Promise<boolean> {
    try {
      const call = { params: this.params, query: { path: file }, ...options }
      return (await this.client.call('statFile', call)).type === 'file'
    } catch (error) {
      if (hasCode(error, ...NOT_THERE)) return false
      throw error
    }
  }
}

function* inParts(keys: readonly string[]): Generator<string[]> {
  let part: string[] = []
  let length = 0
  for (const key of keys) {
    length += encodeURIComponent(key).length
    if (part.length > 0 && length > KEYS_LENGTH) {
      yield part
      part = []
      length = encodeURIComponent(key).length
    }
    part.push(key)
  }
  if (part.length > 0) yield part
}

guard(EnvFiles.prototype, 'sandbox.env', {
  retrieve: [null, ABORTABLE],
  update: [null, null, ABORTABLE],
  remove: [null, null, ABORTABLE],
  exists: [null, ABORTABLE],
})
