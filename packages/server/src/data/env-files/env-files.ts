// .env files: read, edited, and written as a whole. One change of a file at a time.
import { IsletError } from '@islet/contract'
import { ignoring } from '../../lib/has-code.ts'
import { oneChunk } from '../../wire/chunks.ts'
import type { Files } from '../files/files.ts'
import { removeEnv, updateEnv } from './edit.ts'
import { parseEnv } from './parse.ts'

/** Far more than a real file has; parsing blocks the event loop. */
const MAX_BYTES = 512 * 1024
/** A new file may get secrets later. */
const NEW_FILE_MODE = 0o600

interface EnvFilesOptions {
  files: Files
}

interface Abortable {
  signal?: AbortSignal
}

export class EnvFiles {
  readonly #files: Files

  constructor({ files }: EnvFilesOptions) {
    this.#files = files
  }

  /** Throws `file_not_found` if the file does not exist. */
  async read(sandboxId: string, file: string, options: Abortable = {}): Promise<Record<string, string>> {
    return parseEnv((await this.#bytes(sandboxId, file, options)).toString('utf8'))
  }

  /** Creates a missing file. Returns the keys that were set. */
  async update(
    sandboxId: string,
    file: string,
    variables: Record<string, string>,
    options: Abortable = {},
  ): Promise<string[]> {
    const asBytes = Object.entries(variables).map(([key, value]) => [key, toLatin1(value)])
    await this.#files.exclusively(sandboxId, [file], async () => {
      const before = await this.#bytes(sandboxId, file, options).catch(ignoring('file_not_found'))
      const after = updateEnv(before?.toString('latin1') ?? '', Object.fromEntries(asBytes))
      await this.#write(sandboxId, file, after, { before, ...options })
    })
    return Object.keys(variables)
  }

  /** Returns the keys that were in the file. */
  remove(
    sandboxId: string,
    file: string,
    keys: readonly string[],
    options: Abortable = {},
  ): Promise<string[]> {
    return this.#files.exclusively(sandboxId, [file], async () => {
      const before = await this.#bytes(sandboxId, file, options)
      const { text, removed } = removeEnv(before.toString('latin1'), keys)
      await this.#write(sandboxId, file, text, { before, ...options })
      return removed
    })
  }

  async #bytes(sandboxId: string, file: string, options: Abortable): Promise<Buffer> {
    const { entry, body } = await this.#files.read(sandboxId, file, options)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of body) {
      length += chunk.length
      if (length > MAX_BYTES) throw tooLarge(entry.path)
      chunks.push(Buffer.from(chunk))
    }
    return Buffer.concat(chunks)
  }

  async #write(
    sandboxId: string,
    file: string,
    text: string,
    { before, signal }: { before: Buffer | undefined } & Abortable,
  ): Promise<void> {
    const bytes = Buffer.from(text, 'latin1')
    if (before?.equals(bytes)) return
    if (bytes.length > MAX_BYTES) throw tooLarge(file)
    const mode = before ? undefined : NEW_FILE_MODE
    await this.#files.write(sandboxId, file, oneChunk(bytes), { mode, signal })
  }
}

/** One character per byte, so that a file that is not UTF-8 can be edited without damage. */
function toLatin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function tooLarge(path: string): IsletError {
  return new IsletError('bad_request', `${path} is too large for an env file: at most ${MAX_BYTES} bytes.`, {
    hint: 'Read and write it with the files routes.',
  })
}
