// The files of a workspace as entries of a snapshot, and back.
//
// Directories have an entry only if they are empty or their mode is not 0755: a reader that knows only files then still restores the rest.
import { lstat, readdir, readlink, symlink } from 'node:fs/promises'
import { IsletError } from '@islet/sdk'
import type { SnapshotFile, SnapshotOptions } from '../types.ts'
import { type Confined, Directory } from './confined.ts'
import { readAt, writeBytes } from './content.ts'
import { errnoOf, fileError, shown } from './errors.ts'

const MAX_ENTRIES = 100_000
const DEPTH = 128
const DIRECTORY_MODE = 0o755
const FILE_MODE = 0o644

/** Sockets, fifos and files that vanish meanwhile are left out. */
export async function capture(
  confined: Confined,
  options: Required<SnapshotOptions>,
): Promise<SnapshotFile[]> {
  await using root = await Directory.open(confined.root)
  const collected = new Collected(options)
  await captureDirectory(root, '', collected, 0)
  return collected.files
}

/** Into an empty workspace. Symlinks come last, so that nothing is written through them. */
export async function restore(confined: Confined, files: readonly SnapshotFile[]): Promise<void> {
  const of = (wanted: SnapshotFile['type']) => files.filter(({ type = 'file' }) => type === wanted)
  for (const { path } of of('directory'))
    await (await confined.directory(path, { make: true }))[Symbol.asyncDispose]()
  for (const { path, contents, encoding, mode } of of('file'))
    await writeBytes(confined, path, Buffer.from(contents, encoding ?? 'utf8'), mode ?? FILE_MODE)
  for (const { path, target } of of('symlink'))
    await confined.at(path, (at) => symlink(target!, at), { parents: true })
  // Longer paths first: a directory may lose the permission to be entered.
  for (const { path, mode } of of('directory').sort((a, b) => b.path.length - a.path.length)) {
    await using directory = await confined.directory(path)
    await directory.chmod(mode ?? DIRECTORY_MODE)
  }
}

/** What a snapshot has so far, and what is left of its limits. */
export class Collected {
  readonly files: SnapshotFile[] = []
  readonly #ignored: ReadonlySet<string>
  readonly #maxBytes: number
  #bytes = 0

  constructor({ ignore, maxBytes }: Required<SnapshotOptions>) {
    this.#ignored = new Set(ignore.map((entry) => entry.replace(/^(\.\/)+|\/+$/g, '')))
    this.#maxBytes = maxBytes
  }

  ignores(path: string): boolean {
    return this.#ignored.has(path) || this.#ignored.has(path.slice(path.lastIndexOf('/') + 1))
  }

  get room(): number {
    return this.#maxBytes - this.#bytes
  }

  add(file: SnapshotFile): void {
    if (this.files.length === MAX_ENTRIES) throw this.tooLarge(file.path, `more than ${MAX_ENTRIES} entries`)
    this.files.push(file)
  }

  addFile(path: string, bytes: Buffer, mode: number): void {
    this.#bytes += bytes.length
    if (this.room < 0) throw this.tooLarge(path)
    this.add({ path, contents: bytes.toString('base64'), encoding: 'base64', mode })
  }

  tooLarge(path: string, what = `more than ${this.#maxBytes} bytes`): IsletError {
    return new IsletError('limit_exceeded', `The files of the workspace have ${what} (at ${shown(path)}).`, {
      hint: "Leave some out with snapshot({ ignore: ['node_modules'] }), or give a larger maxBytes.",
    })
  }
}

async function captureDirectory(
  directory: Directory,
  path: string,
  collected: Collected,
  depth: number,
): Promise<void> {
  if (depth > DEPTH) throw collected.tooLarge(path, `more than ${DEPTH} levels`)
  const names = (await readdir(directory.path, { encoding: 'buffer' })).sort(Buffer.compare)
  const mode = (await directory.stat()).mode & 0o777
  if (path !== '' && (names.length === 0 || mode !== DIRECTORY_MODE))
    collected.add({ path, contents: '', mode, type: 'directory' })
  for (const bytes of names) {
    const name = textOf(bytes, path)
    const at = directory.child(name)
    const below = path === '' ? name : `${path}/${name}`
    if (collected.ignores(below)) continue
    try {
      const entry = await lstat(at)
      if (entry.isDirectory()) {
        await using child = await Directory.open(at)
        await captureDirectory(child, below, collected, depth + 1)
      } else if (entry.isSymbolicLink())
        collected.add({ path: below, contents: '', type: 'symlink', target: await readlink(at) })
      else if (entry.isFile()) {
        const { bytes, mode } = await readFitting(at, below, collected)
        collected.addFile(below, bytes, mode)
      }
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw fileError(error, below)
    }
  }
}

async function readFitting(at: string, path: string, collected: Collected) {
  try {
    return await readAt(at, path, collected.room)
  } catch (error) {
    throw error instanceof IsletError && error.code === 'limit_exceeded' ? collected.tooLarge(path) : error
  }
}

function textOf(name: Buffer, directory: string): string {
  const text = name.toString()
  if (Buffer.from(text).equals(name)) return text
  throw new IsletError(
    'not_supported',
    `A name in ${shown(directory) || '.'} is not UTF-8: ${shown(text)}.`,
    {
      hint: 'A snapshot is JSON. Rename the file, or leave the directory out with snapshot({ ignore }).',
    },
  )
}
