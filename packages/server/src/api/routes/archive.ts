import { basename } from 'node:path/posix'
import { pipeline, Readable } from 'node:stream'
import { constants, createGunzip, createGzip } from 'node:zlib'
import { IsletError } from '@islet/contract'
import { type ApiDeps, Bytes, type Handlers } from '../route.ts'

const GZIP_MAGIC = [0x1f, 0x8b] as const
/** The archive is sent once and not kept: a third of the time for a tenth more bytes. */
const GZIP_LEVEL = constants.Z_BEST_SPEED
const ZLIB_CHUNK_BYTES = 64 * 1024

export function archiveRoutes({ files }: ApiDeps) {
  return {
    readArchive: async ({ params, query, isHead, signal }) => {
      const gzip = query.gzip ?? true
      const headers = {
        'Content-Type': gzip ? 'application/gzip' : 'application/x-tar',
        'Content-Disposition': `attachment; filename="${fileName(query.path)}.tar${gzip ? '.gz' : ''}"`,
      }
      if (isHead) {
        await files.stat(params.id, query.path, { follow: true })
        return new Bytes(undefined, headers)
      }
      const tar = await files.archive(params.id, query.path, { signal })
      return new Bytes(gzip ? compress(tar) : tar, headers)
    },
    writeArchive: ({ params, query, body, signal }) =>
      files.extract(params.id, query.path, plainTar(body), { owner: query.owner, signal }),
  } satisfies Partial<Handlers>
}

function compress(tar: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const gzip = createGzip({ level: GZIP_LEVEL, chunkSize: ZLIB_CHUNK_BYTES })
  // An error on either side destroys the other and reaches the reader of the result.
  return pipeline(Readable.from(tar, { objectMode: false }), gzip, () => {})
}

/** The body, unpacked if it is gzip. */
async function* plainTar(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = body[Symbol.asyncIterator]()
  const first = await firstBytes(source)
  const whole = rejoin(first, source)
  if (first[0] !== GZIP_MAGIC[0] || first[1] !== GZIP_MAGIC[1]) return yield* whole
  const gunzip = createGunzip({ chunkSize: ZLIB_CHUNK_BYTES })
  const unpacked = pipeline(Readable.from(whole, { objectMode: false }), gunzip, () => {})
  try {
    yield* unpacked as AsyncIterable<Buffer>
  } catch (error) {
    if (String((error as NodeJS.ErrnoException).code).startsWith('Z_')) {
      throw new IsletError('bad_request', 'The body is not a whole gzip stream.', { cause: error })
    }
    throw error
  }
}

async function firstBytes(source: AsyncIterator<Buffer>): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0)
  while (first.length < GZIP_MAGIC.length) {
    const { done, value } = await source.next()
    if (done) break
    first = first.length === 0 ? value : Buffer.concat([first, value])
  }
  return first
}

async function* rejoin(first: Buffer, source: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (first.length > 0) yield first
    for (;;) {
      const { done, value } = await source.next()
      if (done) return
      yield value
    }
  } finally {
    await source.return?.()
  }
}

function fileName(path: string): string {
  return (
    basename(path)
      .replace(/[^A-Za-z0-9._-]/g, '_')
      .slice(0, 100) || 'root'
  )
}
