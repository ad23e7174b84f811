// The records of an engine's cells on disk, by which a restarted server finds them again.
//
//   <runDir>/s/<id>/cell.json     the record; only for root
//   <runDir>/s/<id>/link/         the sandbox sees it read-only at /.islet; all inside may enter it, only root may list it:
//                link.sock              for the guest
//                inside.sock            for all programs inside: see api/inside/inside.ts
//                guest, islet-signal    one program under two names
//                meminfo, cpus          the sandbox's memory and cores: see oci/view.ts
//
// Synchronous calls: these are small files in memory (tmpfs), and a cell takes dozens of steps. Each takes a few microseconds
// here, and a hundred through the thread pool.
import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { chmod, copyFile, readdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import type { ProcessIdentity } from '../lib/proc.ts'
import type { Cell } from './engine.ts'

export interface CellRecord {
  id: string
  /** Its uid range and address among the instance's; engine `oci`. */
  index?: number
  /** Absent: isolation `namespace`, or engine `process`. */
  isolation?: 'gvisor'
  /** Whether it may have a veth. */
  network?: true
  /** Its first process, once started. */
  process?: ProcessIdentity
  /** The layer of its workspace, engine `process`; or of the root that it was bound to ahead. */
  layer?: string
  createdAt: string
}

// The same rule as for names of the warden and of storage.
const ID = /^[a-z0-9][a-z0-9-]{0,62}$/
// sockaddr_un.sun_path, with its NUL.
const MAX_SOCKET_PATH = 108
const LONGEST_SOCKET = 'inside.sock'
const PROGRAMS = ['guest', 'islet-signal']

export class Cells {
  readonly #directory: string
  readonly #runDir: string
  readonly #guest: string
  readonly #insideDir: string | undefined
  readonly #guestMode: number
  #sharedGuest: Promise<string> | undefined

  /**
   * `insideDir`: where sandboxes see their link directory; default: its real path. `guestMode` 0o711: sandboxes may execute the
   * guest, but not read it. They share the file, and a sandbox that can open it could lock it or watch others execute it.
   */
  constructor(
    runDir: string,
    guest: string,
    { insideDir, guestMode = 0o755 }: { insideDir?: string; guestMode?: 0o755 | 0o711 } = {},
  ) {
    this.#runDir = runDir
    this.#guest = guest
    this.#insideDir = insideDir
    this.#guestMode = guestMode
    this.#directory = join(runDir, 's')
  }

  directory(id: string): string {
    if (!ID.test(id)) throw new IsletError('internal', `"${id}" cannot name a cell.`)
    return join(this.#directory, id)
  }

  linkDir(id: string): string {
    return join(this.directory(id), 'link')
  }

  socket(id: string): string {
    return join(this.linkDir(id), 'link.sock')
  }

  cell(id: string): Cell {
    const linkDir = this.linkDir(id)
    return { id, linkDir, insideDir: this.#insideDir ?? linkDir }
  }

  async create(record: CellRecord): Promise<Cell> {
    const longest = join(this.linkDir(record.id), LONGEST_SOCKET)
    if (longest.length >= MAX_SOCKET_PATH) {
      throw new IsletError('engine_unavailable', `${longest} is too long for a unix socket.`, {
        hint: 'Use a data directory with a shorter path.',
      })
    }
    this.#sharedGuest ??= this.#shareGuest()
    const guest = await this.#sharedGuest
    this.#makeDirectory(this.#directory, true)
    if (!this.#makeDirectory(this.directory(record.id), false)) {
      throw new IsletError('conflict', `The cell ${record.id} exists already.`)
    }
    mkdirSync(this.linkDir(record.id))
    for (const name of PROGRAMS) linkSync(guest, join(this.linkDir(record.id), name))
    this.write(record)
    return this.cell(record.id)
  }

  write(record: CellRecord): void {
    const path = join(this.directory(record.id), 'cell.json')
    writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }

  /** Undefined if there is none, or making it was interrupted. */
  read(id: string): CellRecord | undefined {
    try {
      return JSON.parse(readFileSync(join(this.directory(id), 'cell.json'), 'utf8'))
    } catch {
      return undefined
    }
  }

  async list(): Promise<string[]> {
    const entries = await readdir(this.#directory).catch(() => [])
    return entries.filter((entry) => ID.test(entry))
  }

  remove(id: string): void {
    rmSync(this.directory(id), { recursive: true, force: true })
  }

  #makeDirectory(path: string, mayExist: boolean): boolean {
    try {
      mkdirSync(path)
      chmodSync(path, 0o711)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      return mayExist
    }
    return true
  }

  /**
   * Copies the guest to the run directory once; all cells link to that file and share its pages in memory. A newer guest gets
   * another name, so that a running program is never written to.
   */
  async #shareGuest(): Promise<string> {
    const { mtimeMs, size } = await stat(this.#guest)
    const shared = join(this.#runDir, `guest-${Math.trunc(mtimeMs)}-${size}-${this.#guestMode.toString(8)}`)
    if (await stat(shared).catch(() => undefined)) return shared
    const temporary = `${shared}.${process.pid}`
    await copyFile(this.#guest, temporary)
    await chmod(temporary, this.#guestMode)
    await rename(temporary, shared)
    return shared
  }
}
