// .env files: read, changed in place, written whole. One change of a file at a time.
import { IsletError } from '@islet/contract'
import type { FileService } from '../data.ts'
import { parseEnv } from './parse.ts'

const MAX_BYTES = 1024 * 1024

export interface EnvFilesOptions {
  files: FileService
}

export class EnvFiles {
  readonly #options: EnvFilesOptions

  constructor(options: EnvFilesOptions) {
    this.#options = options
  }

  /** `file_not_found` when there is none. */
  async read(
    sandboxId: string,
    file: string,
    options: { signal?: AbortSignal } = {},
  ): Promise<Record<string, string>> {
    return parseEnv((await this.#bytes(sandboxId, file, options)).toString('utf8'))
  }

  async #bytes(sandboxId: string, file: string, options: { signal?: AbortSignal }): Promise<Buffer> {
    const { entry, body } = await this.#options.files.read(sandboxId, file, options)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of body) {
      length += chunk.length
      if (length > MAX_BYTES) throw tooLarge(entry.path)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }
}

function tooLarge(path: string): IsletError {
  return new IsletError('bad_request', `${path} is too large for an env file: at most ${MAX_BYTES} bytes.`, {
    hint: 'Read and write it with the files routes.',
  })
}
