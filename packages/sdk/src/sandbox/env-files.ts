import type { Client } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, guard } from '../options.ts'
import { NOT_THERE } from './files.ts'

interface Abortable {
  signal?: AbortSignal
}

/** How long the keys of one removal may be in an address. */
const KEYS_LENGTH = 4096

/** The .env files of one sandbox. Paths are relative to its working directory. */
export class EnvFiles {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }

  /** All variables of the file, as text. Code `file_not_found` if there is none. */
  async retrieve(file: string, options: Abortable = {}): Promise<Record<string, string>> {
    const call = { params: this.#params, query: { file }, ...options }
    return (await this.#client.call('readEnvFile', call)).variables
  }

  /** Sets these variables and keeps the rest of the file as it is; makes it if there is none. Answers with the keys. */
  async update(file: string, variables: Record<string, string>, options: Abortable = {}): Promise<string[]> {
    const call = { params: this.#params, query: { file }, body: { variables }, ...options }
    return (await this.#client.call('updateEnvFile', call)).keys
  }

  /** Takes these variables out of the file; answers with those that were there. */
  async remove(file: string, keys: readonly string[], options: Abortable = {}): Promise<string[]> {
    const removed: string[] = []
    for (const key of inParts(keys)) {
      const call = { params: this.#params, query: { file, key }, ...options }
      removed.push(...(await this.#client.call('removeEnvKeys', call)).keys)
    }
    return removed
  }

  /** False for whatever is not a file that can be seen. */
  async exists(file: string, options: Abortable = {}): Promise<boolean> {
    try {
      const call = { params: this.#params, query: { path: file }, ...options }
      return (await this.#client.call('statFile', call)).type === 'file'
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
