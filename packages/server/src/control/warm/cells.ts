// Cells that nobody has used yet: started for one sandbox, or ahead of all by the warm pool.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '@islet/contract'
import type { Cell, Engine } from '../../engine/engine.ts'
import { type Link, listenLink } from '../../guest/link.ts'
import type { Log } from '../../log.ts'
import type { Storage } from '../../storage/storage.ts'
import type { RootAhead } from './roots-ahead.ts'

/** How long a started guest may take to dial. Ordinary is a few milliseconds; a loaded machine may need seconds. */
export const CONNECT_TIMEOUT_MS = 20_000

export interface CellParts {
  engine: Engine
  storage: Storage
  log: Log
  /** Whoever has to do with cells, whatever they are for. */
  tell(what: 'waits' | 'ends', cell: Cell): Promise<void>
  /** Layers that nobody has are removed when there is time. */
  dropLater(layers: readonly string[]): void
}

/** A cell that nobody has used yet. */
export interface WaitingCell {
  cell: Cell
  guest: Link
  /** The root it has; its layer is nobody's yet. */
  ahead?: RootAhead
}

interface StartOptions {
  /** Of a sandbox whose memory was saved without it: everybody who waits on it goes on waiting. */
  link?: Link
  /** Nobody waits for it: whatever else runs on the machine goes first. */
  background?: boolean
}

export async function startCell(
  parts: CellParts,
  id: string,
  { link, background }: StartOptions = {},
): Promise<WaitingCell> {
  const cell = await parts.engine.allocate(id)
  let guest = link
  try {
    if (guest) await guest.resume(socketOf(cell))
    else guest = await listen(parts, cell)
    await parts.engine.prepare(cell, { background })
    return { cell, guest }
  } catch (error) {
    await stopCell(parts, { cell, guest })
    throw error
  }
}

/** Ends what runs in it. The layer of a sandbox stays; one that nobody got does not. */
export async function stopCell(
  parts: CellParts,
  { cell, guest, ahead }: Partial<WaitingCell>,
): Promise<void> {
  guest?.lost('it was stopped')
  await guest?.close()
  if (!cell) return
  await parts
    .tell('ends', cell)
    .catch((error) => parts.log.error({ error, cell: cell.id }, 'not all of a cell was let go of'))
  await parts.engine.destroy(cell)
  if (ahead) await deleteLayer(parts, ahead.layer)
}

/** One that nobody holds. */
export async function deleteLayer(
  { storage, log }: Pick<CellParts, 'storage' | 'log'>,
  layer: string,
): Promise<void> {
  await storage
    .delete(layer)
    .catch((error) => log.error({ error, layer }, 'layer not deleted; the next start does it'))
}

export async function listen(parts: CellParts, cell: Cell): Promise<Link> {
  const socketPath = socketOf(cell)
  rmSync(socketPath, { force: true })
  return listenLink({ socketPath, log: parts.log })
}

const socketOf = (cell: Cell): string => join(cell.linkDir, 'link.sock')

interface ClaimOptions {
  /** It need not be started. */
  ready?: WaitingCell | undefined
  /** It has the root that it is claimed for. */
  isRooted?: boolean
  /** Of one that is started. */
  id?: string
  link?: Link | undefined
  /** It has its root, or nobody wants it any more. */
  onRooted?: () => void
}

/** A cell for one sandbox, whose record names it before it gets the root of that. One that nobody took goes with it. */
export class CellClaim implements AsyncDisposable {
  readonly id: string
  /** The root that it has and that it was claimed for: the sandbox has to be the one it names. */
  readonly ahead: RootAhead | undefined
  readonly #parts: CellParts
  #onRooted: (() => void) | undefined
  #waiting: Promise<WaitingCell> | undefined

  constructor(parts: CellParts, options: ClaimOptions = {}) {
    const { ready, isRooted, id = newId('cell'), link, onRooted } = options
    this.id = ready?.cell.id ?? id
    this.#onRooted = onRooted
    this.ahead = isRooted ? ready?.ahead : undefined
    this.#parts = parts
    this.#waiting = ready ? Promise.resolve(ready) : startCell(parts, this.id, { link })
    this.#waiting.catch(() => {})
  }

  /** Once. */
  take(): Promise<WaitingCell> {
    const waiting = this.#waiting
    if (!waiting) throw new Error(`the cell ${this.id} was taken before`)
    this.#waiting = undefined
    return waiting
  }

  /** It has its root. */
  rooted(): void {
    this.#onRooted?.()
    this.#onRooted = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.rooted()
    const waiting = await this.#waiting?.catch(() => undefined)
    this.#waiting = undefined
    if (waiting) await stopCell(this.#parts, waiting)
  }
}
