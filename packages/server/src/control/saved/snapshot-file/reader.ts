// Reads the members of a snapshot file in their fixed order, and checks the checksums at the end.
import { createHash, type Hash } from 'node:crypto'
import { pipeline, Readable } from 'node:stream'
import { checksums, MEMBERS } from './manifest.ts'
import { type TreeKind, TreeRules } from './rules.ts'
import { damaged, type Piece, padded, scanTar } from './tar.ts'
import { zstdDecompress } from './zstd.ts'

const CHUNK_BYTES = 256 * 1024

export class SnapshotReader implements AsyncDisposable {
  readonly #pieces: AsyncGenerator<Piece>
  readonly #sums = new Map<string, { sha256: string; sizeBytes: number }>()
  #next: Piece | undefined

  constructor(body: AsyncIterable<Buffer>) {
    this.#pieces = scanTar(decompressed(body))
  }

  /** The content of a file. */
  async member(name: string, maxBytes: number): Promise<Buffer> {
    const parts: Buffer[] = []
    for await (const part of this.content(name, maxBytes)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** The content of a file, in pieces. */
  async *content(name: string, maxBytes: number): AsyncGenerator<Buffer> {
    const { entry } = await this.#peek()
    if (entry?.path !== name || entry.type !== 'file') throw damaged(`The member ${name} is missing.`)
    if (entry.sizeBytes > maxBytes) throw damaged(`The member ${name} is too large.`)
    this.#next = undefined
    const sum = new Sum()
    for (let seen = 0; seen < padded(entry.sizeBytes); ) {
      const { bytes } = await this.#peek()
      this.#next = undefined
      const own = bytes.subarray(0, Math.max(0, entry.sizeBytes - seen))
      seen += bytes.length
      if (bytes.subarray(own.length).some((byte) => byte !== 0))
        throw damaged('The file has data between its members.')
      if (own.length > 0) yield sum.add(own)
    }
    this.#sums.set(name, sum.end())
  }

  /** The tar bytes of a tree. `name` is its top directory. */
  async *tree(name: string, kind: TreeKind): AsyncGenerator<Buffer> {
    const rules = new TreeRules(name, kind)
    const sum = new Sum()
    for (;;) {
      const piece = await this.#peek()
      if (piece.entry) {
        if (rules.entries > 0 && !piece.entry.path.startsWith(`${name}/`)) break
        rules.check(piece.entry)
      }
      this.#next = undefined
      yield sum.add(piece.bytes)
    }
    this.#sums.set(name, sum.end())
  }

  sumOf(name: string): string {
    return this.#sums.get(name)!.sha256
  }

  /** Reads to the end. Throws if the checksums do not match. */
  async end(): Promise<void> {
    const read = [...this.#sums]
    const listed = checksums.safeParse(parseJson(await this.member(MEMBERS.checksums, CHUNK_BYTES)))
    const isSame =
      listed.success &&
      listed.data.length === read.length &&
      read.every(([name, { sha256, sizeBytes }], i) => {
        const { name: wanted, ...sum } = listed.data[i]!
        return wanted === name && sum.sha256 === sha256 && sum.sizeBytes === sizeBytes
      })
    if (!isSame) throw damaged('The checksums do not match.')
    for (let result = await this.#pieces.next(); !result.done; result = await this.#pieces.next())
      if (result.value.entry) throw damaged('The file has data after its checksums.')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pieces.return(undefined)
  }

  async #peek(): Promise<Piece> {
    if (this.#next) return this.#next
    const { done, value } = await this.#pieces.next()
    if (done) throw damaged('The file ends too early.')
    this.#next = value
    return value
  }
}

class Sum {
  readonly #hash: Hash = createHash('sha256')
  #sizeBytes = 0

  add(bytes: Buffer): Buffer {
    this.#hash.update(bytes)
    this.#sizeBytes += bytes.length
    return bytes
  }

  end(): { sha256: string; sizeBytes: number } {
    return { sha256: this.#hash.digest('hex'), sizeBytes: this.#sizeBytes }
  }
}

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch (error) {
    throw damaged('The file has invalid JSON.', error)
  }
}

async function* decompressed(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const zstd = zstdDecompress({ chunkSize: CHUNK_BYTES })
  try {
    yield* pipeline(
      Readable.from(passed(body), { objectMode: false }),
      zstd,
      () => {},
    ) as AsyncIterable<Buffer>
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code)
    if (code.startsWith('ZSTD_') || code.startsWith('Z_') || code === 'ERR_BUFFER_TOO_LARGE')
      throw damaged('The file is not compressed with zstd, or is cut off.', error)
    throw error
  }
}

/** Turns an early end of the reading into a plain return of the source, so that its connection can still be answered. */
async function* passed(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of body) yield chunk
}
