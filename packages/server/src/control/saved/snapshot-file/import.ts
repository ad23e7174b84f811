// Makes a saved state of a snapshot file. The file is not trusted: the schema checks its manifest, TreeRules and GNU tar check its
// trees, and the files go into directories that nothing else uses. Nothing is named before all checksums match.
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { IsletError, jsonProblem, LIMITS, newId, storeKey } from '@islet/contract'
import { z } from 'zod'
import type { SavedRecord, SavedTable } from '../../../db/saved-states.ts'
import type { Image, Images, Lower } from '../../../image/image.ts'
import { type Job, publish } from '../../../image/job.ts'
import { diskFull, type RunResult, runOk } from '../../../image/run.ts'
import { spareBytes } from '../../../storage/room.ts'
import type { Storage } from '../../../storage/storage.ts'
import {
  FORMAT_VERSION,
  type ImageOfFile,
  imageTrees,
  type Manifest,
  MEMBERS,
  manifest,
  manifestHead,
  WITHOUT_IMAGE,
} from './manifest.ts'
import { parseJson, SnapshotReader } from './reader.ts'
import { type TreeKind, xattrArguments } from './rules.ts'
import { systemName } from './system.ts'
import { damaged, END_OF_TAR } from './tar.ts'

/** More than environment, metadata and services can take within their own bounds, with every character escaped. */
const MAX_MANIFEST_BYTES = 16 * 1024 * 1024
/** JSON escapes make keys and values longer. */
const MAX_STORE_FILE_BYTES = 8 * LIMITS.storeBytes
const MAX_LINE_BYTES = 8 * LIMITS.storeValueBytes
/** Written in one turn of the event loop. */
const STORE_BATCH = { rows: 1000, bytes: 4 * 1024 * 1024 }
/** How much is written before free space is checked again. */
const LOOK_BYTES = 16 * 1024 * 1024

export interface ImportOptions {
  body: AsyncIterable<Buffer>
  /** Accept a snapshot of image `host` from a machine with other programs. */
  otherHost: boolean
  engine: { engine: string; isolation: string }
  table: SavedTable
  /** Throws if all stores together are full. */
  assertStoreRoom(): void
  storage: Storage
  images: Images
  /** Writes the `making` row: from now on a crash leaves nothing. */
  hold(making: SavedRecord): void
  signal: AbortSignal
}

export interface Imported {
  saved: SavedRecord
  snapshot: Manifest['snapshot']
}

/** On an error the caller discards what `hold` was told of. */
export async function readSnapshot(options: ImportOptions): Promise<Imported> {
  const { storage } = options
  await using reader = new SnapshotReader(options.body)
  const about = await readManifest(reader)
  const local = await localImage(about, options)
  const making = makingOf(about, local, options)
  const { layer } = making.state.root
  options.hold(making)
  await readStore(reader, making.id, options)
  // Without stacks the tree is the layer.
  if (storage.capabilities.stacks) await storage.create(layer)
  const disks = [dirname(storage.treePath(layer, 'root')), options.images.directory('.')]
  const extract = (tree: string, path: string, kind: TreeKind) =>
    extractTree(bounded(reader.tree(tree, kind), disks), { tree, path, kind, signal: options.signal })
  for (const tree of about.layer)
    await extract(`layer/${tree}`, storage.treePath(layer, tree), { isLayer: true })
  const image = await readImage(reader, about.image, { ...options, local, extract, making })
  const root = { layer, trees: image?.trees ?? [] }
  const state = { ...making.state, image: image?.name ?? null, root }
  return { saved: { ...making, state }, snapshot: about.snapshot }
}

async function readManifest(reader: SnapshotReader): Promise<Manifest> {
  const value = parseJson(await reader.member(MEMBERS.manifest, MAX_MANIFEST_BYTES))
  const head = manifestHead.safeParse(value)
  if (!head.success) throw damaged('The file is not a snapshot.')
  if (head.data.version !== FORMAT_VERSION) {
    throw new IsletError(
      'not_supported',
      `The file has format version ${head.data.version}; this server reads ${FORMAT_VERSION}.`,
    )
  }
  const parsed = manifest.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw damaged(`The manifest is not valid: ${issue?.path.join('.')}: ${issue?.message}.`)
}

/** The image of this machine that it can use; undefined: the one in the file, or none. */
async function localImage(about: Manifest, options: ImportOptions): Promise<Image | undefined> {
  const { image, arch, layer } = about
  const { storage } = options
  if (arch !== process.arch)
    throw elsewhere(`The snapshot was made on ${arch}; this machine is ${process.arch}.`)
  if ((image.kind === 'none') === storage.capabilities.stacks)
    throw elsewhere('The snapshot was made by an engine that stores files differently.')
  const local = await findLocal(image, options)
  const trees = local ? local.trees : image.kind === 'included' ? image.trees : [{ tree: WITHOUT_IMAGE }]
  const fits = layer.every((tree) => trees.some((each) => each.tree === tree))
  if (!fits || (image.kind === 'none' && layer.length !== 1))
    throw damaged('The layer does not fit the image.')
  if (image.kind === 'included' && !local && process.getuid?.() !== 0)
    throw elsewhere('The snapshot holds an image, and only root can make images.')
  return local
}

async function findLocal(
  image: ImageOfFile,
  { images, otherHost }: ImportOptions,
): Promise<Image | undefined> {
  if (image.kind === 'included') {
    // The digest of a registry names the same files everywhere. Other digests are made from the inputs of a build.
    const known = (await images.list()).find(({ digest }) => digest === image.digest)
    return image.source.kind === 'oci' && known?.source.kind === 'oci' ? known : undefined
  }
  if (image.kind === 'none') return undefined
  const [host, system] = [await images.resolve('host'), await systemName()]
  if (otherHost || host.digest === image.digest || system === image.system) return host
  throw new IsletError(
    'conflict',
    `The snapshot needs the programs of a machine with ${image.system}; this one has ${system}.`,
    {
      hint: 'Import it with otherHost if its files do not depend on that.',
      details: { system, wanted: image.system },
    },
  )
}

function makingOf(
  about: Manifest,
  local: Image | undefined,
  { engine, storage }: ImportOptions,
): SavedRecord {
  const layer = newId('layer')
  const now = Date.now()
  const home = about.image.kind === 'none' ? about.image.home : undefined
  const moved = (path: string) => {
    const isInside = home !== undefined && (path === home || path.startsWith(`${home}/`))
    return isInside ? storage.treePath(layer, WITHOUT_IMAGE) + path.slice(home.length) : path
  }
  return {
    id: newId('saved'),
    sandboxId: '',
    status: 'making',
    state: {
      ...about.state,
      ...engine,
      workdir: moved(about.state.workdir),
      image: local?.name ?? null,
      baseSnapshot: null,
      patchesOf: null,
      root: { layer, trees: [] },
    },
    services: about.services.map(({ spec, isWanted, path, installed }) => ({
      name: spec.name,
      spec,
      state: { ...NEW_SERVICE, path: moved(path), installed, goal: isWanted ? 'up' : 'down', attemptAt: now },
    })),
    patchRuns: [],
    memory: false,
    frozenMs: 0,
    sizeBytes: null,
    createdAt: now,
  }
}

const NEW_SERVICE = {
  status: 'stopped',
  installId: null,
  processId: null,
  pid: null,
  assignedPort: null,
  port: null,
  url: null,
  reason: null,
  restartCount: 0,
  healthy: null,
  healthStatus: null,
  notBefore: 0,
} as const

const storeLine = z.strictObject({
  key: storeKey,
  value: z
    .string()
    .refine((text) => Buffer.byteLength(text) <= LIMITS.storeValueBytes, 'too large')
    .refine((text) => jsonProblem(parseJson(Buffer.from(text))) === undefined),
  expiresAt: z.number().int().nullable(),
})

async function readStore(
  reader: SnapshotReader,
  id: string,
  { table, assertStoreRoom }: Pick<ImportOptions, 'table' | 'assertStoreRoom'>,
): Promise<void> {
  let keys = 0
  let bytes = 0
  let last = ''
  let batch: z.infer<typeof storeLine>[] = []
  let batchBytes = 0
  const write = () => {
    if (batch.length > 0) assertStoreRoom()
    table.setStore(id, batch)
  }
  for await (const line of lines(reader.content(MEMBERS.store, MAX_STORE_FILE_BYTES))) {
    const { data: row } = storeLine.safeParse(parseJson(line))
    if (!row || row.key === last) throw damaged('The store cannot be read.')
    last = row.key
    const rowBytes = Buffer.byteLength(row.key) + Buffer.byteLength(row.value)
    bytes += rowBytes
    if (++keys > LIMITS.storeKeys || bytes > LIMITS.storeBytes) throw damaged('The store is too large.')
    batch.push(row)
    batchBytes += rowBytes
    if (batch.length < STORE_BATCH.rows && batchBytes < STORE_BATCH.bytes) continue
    write()
    batch = []
    batchBytes = 0
    await setImmediate()
  }
  write()
}

async function* lines(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const chunk of source) {
    let at = 0
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, at)) {
      yield Buffer.concat([...rest, chunk.subarray(at, end)])
      rest = []
      restBytes = 0
      at = end + 1
    }
    rest.push(chunk.subarray(at))
    restBytes += chunk.length - at
    if (restBytes > MAX_LINE_BYTES) throw damaged('A line of the store is too long.')
  }
  if (restBytes > 0) throw damaged('The last line of the store is not complete.')
}

interface ImageParts extends ImportOptions {
  local: Image | undefined
  making: SavedRecord
  extract(tree: string, path: string, kind: TreeKind): Promise<void>
}

/** Reads the file to its end. The digest of an included image is computed: the one in the manifest is only a claim. */
async function readImage(
  reader: SnapshotReader,
  image: ImageOfFile,
  parts: ImageParts,
): Promise<Image | undefined> {
  const { local, images, signal, making, table, extract } = parts
  if (image.kind !== 'included' || local) {
    for (const tree of image.kind === 'included' ? imageTrees(image) : [])
      for await (const _ of reader.tree(`image/${tree}`, { isLayer: false }));
    await reader.end()
    return local
  }
  return images.make(`snapshot ${making.id}`, { signal }, async (job: Job) => {
    for (const tree of imageTrees(image))
      await extract(`image/${tree}`, join(job.staging.image, tree), { isLayer: false })
    await reader.end()
    const sums = imageTrees(image).map((tree) => reader.sumOf(`image/${tree}`))
    const digest = createHash('sha256')
      .update(JSON.stringify([sums, image.trees, image.defaults]))
      .digest('hex')
    const trees = (name: string) =>
      image.trees.map(({ tree, at, lowers }) => {
        return { tree, at, lowers: lowers.map((lower): Lower => ({ kind: 'image', name, tree: lower })) }
      })
    const { source, defaults } = image
    const made = (await job.find(digest)) ?? (await publish(job.staging, { digest, source, defaults, trees }))
    // From now on this record keeps the image; until now the staging did.
    table.save({ ...making, state: { ...making.state, image: made.name } })
    return made
  })
}

/** tar makes the directory and refuses existing files, so nothing is written twice or through a link. */
async function extractTree(
  bytes: AsyncIterable<Buffer>,
  { tree, path, kind, signal }: { tree: string; path: string; kind: TreeKind; signal: AbortSignal },
): Promise<void> {
  const isRoot = process.getuid?.() === 0
  const owner = isRoot ? ['--numeric-owner', '--same-owner'] : ['--no-same-owner']
  const how = [
    '--extract',
    '--file=-',
    ...owner,
    '--preserve-permissions',
    '--delay-directory-restore',
    '--keep-old-files',
  ]
  const where = [`--transform=s,^${tree},${basename(path)},S`, `--directory=${dirname(path)}`]
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const explain = ({ stderr }: RunResult) =>
    new IsletError('snapshot_damaged', 'The files of the snapshot cannot be unpacked.', {
      details: { stderr: stderr.slice(-2000) },
    })
  const input = Readable.from(bytes, { objectMode: false })
  await runOk(['tar', ...how, ...xattrArguments(kind), ...where], { input, signal, tied: true, explain })
}

async function* bounded(bytes: AsyncIterable<Buffer>, disks: readonly string[]): AsyncGenerator<Buffer> {
  let spare = 0
  for await (const chunk of bytes) {
    // Sandboxes and other imports write at the same time.
    if (spare < chunk.length) spare = Math.min(await spareBytes(disks), LOOK_BYTES)
    spare -= chunk.length
    if (spare < 0) throw diskFull()
    yield chunk
  }
  yield END_OF_TAR
}

function elsewhere(message: string): IsletError {
  return new IsletError('not_supported', message, {
    hint: 'Import it on a machine like the one that exported it.',
  })
}
