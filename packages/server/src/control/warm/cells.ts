// Unused cells: started for one sandbox, or ahead of demand by the warm pool.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '@islet/contract'
import type { Cell, Engine } from '../../engine/engine.ts'
import { type Link, listenLink } from '../../guest/link.ts'
import type { Log } from '../../log.ts'
import type { Storage } from '../../storage/storage.ts'
import type { RootAhead } from './roots-ahead.ts'

/** How long a started guest may take to dial: usually milliseconds, on a loaded machine seconds. */
export const CONNECT_TIMEOUT_MS = 20_000

export interface CellParts {
  engine: Engine
  storage: Storage
  log: Log
  /** Tells the observers. */
  tell(what: 'waits' | 'ends', cell: Cell): Promise<void>
  /** Deletes layers in the background. */
  dropLater(layers: readonly string[]): void
}

/** An unused cell. */
export interface WaitingCell {
  cell: Cell
  guest: Link
  /** The root that it was bound to ahead; no record holds its layer. */
  ahead?: RootAhead
}

interface StartOptions {
  /** The link of a hibernated sandbox: requests that wait on it keep waiting. */
  link?: Link
  /** With low priority. */
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

/** Ends its processes. The layer of a sandbox stays; one that was only bound ahead is deleted. */
export async function stopCell(
  parts: CellParts,
  { cell, guest, ahead }: Partial<WaitingCell>,
): Promise<void> {
  guest?.lost('it was stopped')
  await guest?.close()
  if (!cell) return
  await parts
    .tell('ends', cell)
    .catch((error) => parts.log.error({ error, cell: cell.id }, 'an observer could not release a cell'))
  await parts.engine.destroy(cell)
  if (ahead) await deleteLayer(parts, ahead.layer)
}

/** For a layer that no record holds. */
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
  /** A cell that runs already. */
  ready?: WaitingCell | undefined
  /** `ready` has the requested root. */
  isRooted?: boolean
  /** Id and link of a cell that is started now. */
  id?: string
  link?: Link | undefined
  /** Called when the cell has its root, or the claim is disposed of. */
  onRooted?: () => void
}

/** A cell for one sandbox; the record names it before the cell has its root. A cell that is not taken ends with the claim. */
export class CellClaim implements AsyncDisposable {
  readonly id: string
  /** The requested root, if the cell has it: the sandbox must then use the id in it. */
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

  /** Can be called once. */
  take(): Promise<WaitingCell> {
    const waiting = this.#waiting
    if (!waiting) throw new Error(`the cell ${this.id} was taken before`)
    this.#waiting = undefined
    return waiting
  }

  /** Call it when the cell has its root. */
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
