// Images from a directory or a tar on this machine. GNU tar unpacks both into a new directory: it strips leading slashes, refuses
// `..` and creates symlinks that lead outside last. The digest is that of the tar; a directory is read as a tar.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { IsletError } from '@islet/contract'
import { adapt, adaptedTrees } from './adapt.ts'
import type { Image, ImageSource } from './image.ts'
import { type Job, publish } from './job.ts'
import { type RunResult, runOk } from './run.ts'

interface ArchiveJob extends Job {
  source: Extract<ImageSource, { path: string }>
  /** The path to read it from. */
  at: string
}

const XATTRS = ['--xattrs', '--xattrs-include=user.*']
const CREATE = ['--create', '--file=-', '--numeric-owner', '--one-file-system', ...XATTRS]
/** Makes the tar of a tree reproducible: sorted names, no access times, no process id. */
const STABLE = [
  '--sort=name',
  '--format=posix',
  '--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f',
]
const EXTRACT = [
  '--extract',
  '--numeric-owner',
  '--same-owner',
  '--preserve-permissions',
  '--delay-directory-restore',
  ...XATTRS,
]

export async function importArchive(job: ArchiveJob): Promise<Image> {
  const { source, at, staging, onProgress } = job
  const found = await stat(at).catch(() => undefined)
  const fits = source.kind === 'directory' ? found?.isDirectory() : found?.isFile()
  if (!found || !fits)
    throw new IsletError('file_not_found', `There is no ${source.kind} ${source.path} on the server.`)

  const root = join(staging.image, 'root')
  await mkdir(root)
  const digest = source.kind === 'tar' ? await hashTar(job, found.size) : await copyDirectory(job, root)
  const existing = await job.find(digest)
  if (existing) return existing
  if (source.kind === 'tar') {
    onProgress({ stage: 'unpack', message: `Unpacking ${source.path}`, fraction: 0.4 })
    // tar detects the compression; --force-local because a colon in the name would mean a remote machine.
    await unpack(job, [`--file=${at}`, '--force-local', `--directory=${root}`])
  }
  onProgress({ stage: 'finish', message: 'Adding what a sandbox needs', fraction: 0.95 })
  const defaults = await adapt(staging.image, { env: { LANG: 'C.UTF-8' } })
  return publish(staging, { digest, source, defaults, trees: adaptedTrees })
}

async function hashTar({ source, at, signal, onProgress }: ArchiveJob, sizeBytes: number): Promise<string> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(at, { highWaterMark: 4 << 20, signal })) {
    hash.update(chunk)
    bytes += chunk.length
    onProgress({
      stage: 'resolve',
      message: `Reading ${source.path}`,
      fraction: (0.4 * bytes) / Math.max(1, sizeBytes),
    })
  }
  return hash.digest('hex')
}

async function copyDirectory(job: ArchiveJob, root: string): Promise<string> {
  const { source, at, signal, onProgress } = job
  onProgress({ stage: 'unpack', message: `Copying ${source.path}` })
  const hash = createHash('sha256')
  const reader = spawn('tar', [...CREATE, ...STABLE, `--directory=${at}`, '.'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, LANG: 'C.UTF-8' },
    signal,
  })
  let stderr = ''
  reader.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk).slice(-2000)
  })
  reader.stdout.on('data', (chunk: Buffer) => hash.update(chunk))
  const read = new Promise<void>((resolve, reject) => {
    reader.once('error', reject)
    reader.once('close', (code) => {
      // 1: a file changed while it was read, which is accepted.
      if (code === 0 || code === 1) resolve()
      else reject(new IsletError('bad_request', `${source.path} cannot be read.`, { details: { stderr } }))
    })
  })
  const written = unpack(job, ['--file=-', `--directory=${root}`], reader.stdout)
  // Wait for both before the cleanup; the writer's error is closer to the cause.
  const [reading, writing] = await Promise.allSettled([read, written])
  if (writing.status === 'rejected') throw writing.reason
  if (reading.status === 'rejected') throw reading.reason
  return hash.digest('hex')
}

async function unpack(
  { source, signal }: ArchiveJob,
  argv: readonly string[],
  input?: Readable,
): Promise<void> {
  const explain = ({ stderr }: RunResult) =>
    new IsletError('bad_request', `${source.path} cannot be unpacked as a root filesystem.`, {
      hint: 'It must be a whole tar (plain, gzip, zstd or xz) whose names stay inside its root.',
      details: { stderr: stderr.slice(-2000) },
    })
  await runOk(['tar', ...EXTRACT, ...argv], { signal, tied: true, explain, ...(input && { input }) })
}
