// A sandbox of an Islet server as a CloudSandbox: `new SandboxAgent({ backend: 'remote', remote: isletSandbox() })`.
import { type ClientOptions, type CreateOptions, type FileEntry, hasCode, Sandbox } from '@islet/sdk'
import { bad, checkedSnapshotOptions } from '../checks.ts'
import { Collected } from '../files/capture.ts'
import { MAX_OUTPUT_BYTES } from '../run/output.ts'
import type { SandboxRunResult, SnapshotFile, SnapshotOptions } from '../types.ts'
import { Cloud, type Request } from './cloud.ts'

/** How to make the sandbox (`Sandbox.create`), and which server to use. */
export interface IsletSandboxOptions extends CreateOptions, ClientOptions {
  /** The id or name of an existing sandbox to use. `close` leaves it running. */
  sandbox?: string
  /**
   * What `snapshot()` returns: the files of the working directory, which any backend can resume, or the id of a snapshot that the server
   * keeps, of the whole disk. Default: files.
   */
  snapshots?: 'files' | 'server'
}

/** The server lists no deeper than this. */
const DEPTH = 64
const AT_ONCE = 8

export function isletSandbox(options: IsletSandboxOptions = {}): IsletSandbox {
  return new IsletSandbox(options)
}

export class IsletSandbox extends Cloud<Sandbox> {
  readonly providerId = 'islet'
  readonly #options: IsletSandboxOptions

  /** Callers use `isletSandbox`. */
  constructor(options: IsletSandboxOptions) {
    super()
    if (!['files', 'server', undefined].includes(options.snapshots))
      throw bad("snapshots is 'files' or 'server'.")
    this.#options = options
  }

  /** The id of the sandbox, to come back to it from another process: `isletSandbox({ sandbox: id })`. */
  get id(): string | undefined {
    return this.instance?.id
  }

  /** Starts from a snapshot of the server, in a new sandbox. */
  async resume(snapshotId: string): Promise<void> {
    if (this.#options.sandbox !== undefined)
      throw bad('A snapshot of the server is resumed in a new sandbox.', 'Leave the option sandbox out.')
    await this.close()
    this.instance = await this.open({ snapshot: snapshotId, runtime: undefined })
  }

  async snapshot(options: SnapshotOptions = {}): Promise<{ files: SnapshotFile[]; snapshotId?: string }> {
    const checked = checkedSnapshotOptions(options)
    if (this.#options.snapshots !== 'server') return { files: await filesOf(this.started(), checked) }
    const { id } = await this.started().createSnapshot()
    return { files: [], snapshotId: id }
  }

  protected open(more: CreateOptions = {}): Promise<Sandbox> {
    const { sandbox, snapshots: _, ...rest } = this.#options
    return sandbox === undefined ? Sandbox.create({ ...rest, ...more }) : Sandbox.connect(sandbox, rest)
  }

  protected async execute(sandbox: Sandbox, argv: string[], request: Request): Promise<SandboxRunResult> {
    const { timeoutSeconds, ...rest } = request
    const options = { ...rest, timeout: timeoutSeconds * 1000, maxOutputBytes: MAX_OUTPUT_BYTES }
    const { exitCode, timedOut, stdout, stderr, truncated } = await sandbox.exec.run(argv, options)
    return { output: stdout + stderr, exitCode, timedOut, stdout, stderr, truncated }
  }

  protected async write(sandbox: Sandbox, path: string, bytes: Uint8Array): Promise<void> {
    await sandbox.files.write(path, bytes)
  }

  protected read(sandbox: Sandbox, path: string): Promise<Uint8Array> {
    return sandbox.files.readBytes(path)
  }

  protected isMissing(error: unknown): boolean {
    return hasCode(error, 'file_not_found')
  }

  protected async end(sandbox: Sandbox): Promise<void> {
    if (this.#options.sandbox === undefined) await sandbox.kill()
  }
}

/** The working directory. Sockets and fifos are left out. */
async function filesOf(sandbox: Sandbox, options: Required<SnapshotOptions>): Promise<SnapshotFile[]> {
  const { workdir } = await sandbox.getInfo()
  const collected = new Collected(options)
  const below = ({ path }: FileEntry) => path.slice(workdir === '/' ? 1 : workdir.length + 1)
  const all = (await sandbox.files.list(workdir, { depth: DEPTH })).filter((entry) => {
    const names = below(entry).split('/')
    if (names.length === DEPTH && entry.type === 'directory')
      throw collected.tooLarge(below(entry), `more than ${DEPTH} levels`)
    return !names.some((_, index) => collected.ignores(names.slice(0, index + 1).join('/')))
  })
  const parents = new Set(all.map(({ path }) => path.slice(0, path.lastIndexOf('/'))))
  for (const entry of all) {
    const mode = Number.parseInt(entry.mode, 8) & 0o777
    const path = below(entry)
    if (entry.type === 'symlink')
      collected.add({ path, contents: '', type: 'symlink', target: entry.target! })
    else if (entry.type === 'directory' && (!parents.has(entry.path) || mode !== 0o755))
      collected.add({ path, contents: '', mode, type: 'directory' })
  }
  const files = all.filter(({ type }) => type === 'file')
  for (let at = 0; at < files.length; at += AT_ONCE)
    await Promise.all(
      files.slice(at, at + AT_ONCE).map(async (entry) => {
        const bytes = await contentOf(sandbox, entry, collected)
        if (bytes) collected.addFile(below(entry), bytes, Number.parseInt(entry.mode, 8) & 0o777)
      }),
    )
  return collected.files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** At most the bytes that it had when it was listed; undefined if it is gone. */
async function contentOf(
  sandbox: Sandbox,
  { path, sizeBytes }: FileEntry,
  collected: Collected,
): Promise<Buffer | undefined> {
  if (sizeBytes > collected.room) throw collected.tooLarge(path)
  if (sizeBytes === 0) return Buffer.alloc(0)
  try {
    return Buffer.from(await sandbox.files.readBytes(path, { end: sizeBytes - 1 }))
  } catch (error) {
    if (hasCode(error, 'file_not_found')) return undefined
    throw error
  }
}
