// Writes a snapshot file (manifest.ts) in pieces, at the pace of the reader.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { constants } from 'node:zlib'
import { IsletError, type SnapshotInfo } from '@islet/contract'
import type { SavedRecord, SavedTable } from '../../../db/saved-states.ts'
import type { Root } from '../../../engine/engine.ts'
import type { Image, Images } from '../../../image/image.ts'
import { exists } from '../../../lib/exists.ts'
import { pick } from '../../../lib/pick.ts'
import type { Storage } from '../../../storage/storage.ts'
import { VERSION } from '../../../version.ts'
import {
  type Checksums,
  FORMAT,
  FORMAT_VERSION,
  type ImageOfFile,
  imageTrees,
  type Manifest,
  MEMBERS,
  STATE_FIELDS,
  WITHOUT_IMAGE,
} from './manifest.ts'
import { type TreeKind, xattrArguments } from './rules.ts'
import { systemName } from './system.ts'
import { END_OF_TAR, memberHeader, padding, scanTar } from './tar.ts'
import { zstdCompress } from './zstd.ts'

/** Rows read in one turn of the event loop; each may have a mebibyte. */
const STORE_PAGE = 16
const CHUNK_BYTES = 256 * 1024

interface ExportOptions {
  snapshot: SnapshotInfo
  saved: SavedRecord
  /** Its layer holds all differences from the image. */
  root: Root
  table: SavedTable
  storage: Storage
  images: Images
  /** At the bottom of the root; undefined if there is none. */
  image: Image | undefined
}

/** The bytes of the file. When the iteration ends, also early, no process of it is left. */
export async function* writeSnapshot(options: ExportOptions): AsyncGenerator<Buffer> {
  const zstd = zstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 }, chunkSize: CHUNK_BYTES })
  const abort = new AbortController()
  const running: Promise<unknown>[] = []
  const tar = Readable.from(writeTar(options, { signal: abort.signal, running }), { objectMode: false })
  try {
    yield* pipeline(tar, zstd, () => {}) as AsyncIterable<Buffer>
  } finally {
    abort.abort()
    await Promise.allSettled(running)
  }
}

interface Tars {
  signal: AbortSignal
  running: Promise<unknown>[]
}

async function* writeTar(options: ExportOptions, tars: Tars): AsyncGenerator<Buffer> {
  const { storage, images, image, root } = options
  const manifest = await manifestOf(options)
  const sums: Checksums = []
  async function* summed(name: string, parts: AsyncIterable<Buffer> | Iterable<Buffer>) {
    const hash = createHash('sha256')
    let sizeBytes = 0
    for await (const part of parts) {
      hash.update(part)
      sizeBytes += part.length
      yield part
    }
    sums.push({ name, sha256: hash.digest('hex'), sizeBytes })
  }
  async function* member(name: string, sizeBytes: number, parts: Iterable<Buffer>) {
    yield memberHeader(name, sizeBytes)
    yield* summed(name, parts)
    yield padding(sizeBytes)
  }
  const about = json(manifest)
  yield* member(MEMBERS.manifest, about.length, [about])
  let storeBytes = 0
  let count = 0
  for (const line of storeLines(options)) {
    storeBytes += line.length
    if (++count % STORE_PAGE === 0) await setImmediate()
  }
  yield* member(MEMBERS.store, storeBytes, storeLines(options))
  for (const tree of manifest.layer) {
    const source = storage.treePath(root.layer, tree)
    yield* summed(`layer/${tree}`, readTree(source, `layer/${tree}`, { isLayer: true }, tars))
  }
  for (const tree of manifest.image.kind === 'included' ? imageTrees(manifest.image) : []) {
    const source = join(images.directory(image!.name), tree)
    yield* summed(`image/${tree}`, readTree(source, `image/${tree}`, { isLayer: false }, tars))
  }
  const checksums = json(sums)
  yield* member(MEMBERS.checksums, checksums.length, [checksums])
  yield END_OF_TAR
}

/** A directory as tar entries below `name`. Sockets are left out: nothing listens on them in a copy. */
async function* readTree(source: string, name: string, kind: TreeKind, tars: Tars): AsyncGenerator<Buffer> {
  const { signal, running } = tars
  // Equal trees give equal bytes: sorted names, no access times, no process id.
  const stable = [
    '--sort=name',
    '--format=posix',
    '--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f',
  ]
  const transform = `--transform=s,^${basename(source)},${name},S`
  const what = [transform, `--directory=${dirname(source)}`, '--', basename(source)]
  const argv = [
    '--create',
    '--file=-',
    '--numeric-owner',
    '--one-file-system',
    '--sparse',
    ...stable,
    ...xattrArguments(kind),
    ...what,
  ]
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'tar', ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, LANG: 'C.UTF-8' },
    signal,
    killSignal: 'SIGKILL',
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk).slice(-2000)
  })
  child.once('error', (error) => {
    stderr = error.message
  })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve()
      else
        reject(
          new IsletError('internal', 'The files of the snapshot cannot be read.', { details: { stderr } }),
        )
    })
  })
  running.push(ended)
  ended.catch(() => {})
  let isDevice = false
  try {
    for await (const { entry, bytes } of scanTar(child.stdout)) {
      // Devices of an image are left out: every sandbox has its own /dev.
      if (entry) isDevice = !kind.isLayer && (entry.type === 'block' || entry.type === 'character')
      if (!isDevice) yield bytes
    }
  } catch (error) {
    await ended
    throw error
  }
  await ended
}

async function manifestOf({ snapshot, saved, root, storage, image }: ExportOptions): Promise<Manifest> {
  const { id, name, tag, description, createdAt } = snapshot
  const trees = image ? image.trees.map(({ tree }) => tree) : [WITHOUT_IMAGE]
  const there = await Promise.all(trees.map((tree) => exists(storage.treePath(root.layer, tree))))
  return {
    format: FORMAT,
    version: FORMAT_VERSION,
    islet: VERSION,
    arch: process.arch,
    snapshot: { id, name, tag, description, createdAt },
    state: { ...pick(saved.state, STATE_FIELDS), network: networkOf(saved.state.network) },
    services: saved.services.map(({ spec, state: { goal, path, installed } }) => {
      return { spec, isWanted: goal === 'up' || goal === 'again', path, installed }
    }),
    image: image
      ? await imageOf(image)
      : { kind: 'none', home: storage.treePath(saved.state.root.layer, WITHOUT_IMAGE) },
    layer: trees.filter((_, i) => there[i]),
  }
}

/** Without the token of the port's preview, and so without a port that asks for one. */
function networkOf({ enabled, port, auth }: SavedRecord['state']['network']): Manifest['state']['network'] {
  return { enabled, port: auth ? null : port }
}

async function imageOf({ digest, source, defaults, trees }: Image): Promise<ImageOfFile> {
  if (source.kind === 'packages') throw new Error(`${digest} is over another image`)
  if (source.kind === 'host') return { kind: 'host', digest, system: await systemName() }
  const mounted = trees.map(({ tree, at, lowers }) => ({
    tree,
    at,
    lowers: lowers.flatMap((lower) => (lower.kind === 'image' ? lower.tree : [])),
  }))
  return { kind: 'included', digest, source, defaults, trees: mounted }
}

function* storeLines({ saved, table }: ExportOptions): Generator<Buffer> {
  for (let after = ''; ; ) {
    const rows = table.storePage(saved.id, after, STORE_PAGE)
    for (const { key, value, expiresAt } of rows)
      yield Buffer.from(`${JSON.stringify({ key, value, expiresAt })}\n`)
    if (rows.length < STORE_PAGE) return
    after = rows.at(-1)!.key
  }
}

function json(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`)
}
