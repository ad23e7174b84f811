// Shells that nobody has used yet: started for one sandbox, or ahead of all by the warm pool.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '@islet/contract'
import type { Engine, Shell } from '../engine/engine.ts'
import { type Link, listenLink } from '../guest/link.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../storage/storage.ts'
import type { RootAhead } from './roots-ahead.ts'

/** How long a started guest may take to dial. Ordinary is a few milliseconds; a loaded machine may need seconds. */
export const CONNECT_TIMEOUT_MS = 20_000

export interface ShellParts {
  engine: Engine
  storage: Storage
  log: Log
  /** Whoever has to do with shells, whatever they are for. */
  tell(what: 'waits' | 'ends', shell: Shell): Promise<void>
  /** Layers that nobody has are removed when there is time. */
  dropLater(layers: readonly string[]): void
}

/** A shell that nobody has used yet. */
export interface WaitingShell {
  shell: Shell
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

export async function startShell(
  parts: ShellParts,
  id: string,
  { link, background }: StartOptions = {},
): Promise<WaitingShell> {
  const shell = await parts.engine.allocate(id)
  let guest = link
  try {
    if (guest) await guest.resume(socketOf(shell))
    else guest = await listen(parts, shell)
    await parts.engine.prepare(shell, { background })
    return { shell, guest }
  } catch (error) {
    await stopShell(parts, { shell, guest })
    throw error
  }
}

/** Ends what runs in it. The layer of a sandbox stays; one that nobody got does not. */
export async function stopShell(
  parts: ShellParts,
  { shell, guest, ahead }: Partial<WaitingShell>,
): Promise<void> {
  guest?.lost('it was stopped')
  await guest?.close()
  if (!shell) return
  await parts
    .tell('ends', shell)
    .catch((error) => parts.log.error({ error, shell: shell.id }, 'not all of a shell was let go of'))
  await parts.engine.destroy(shell)
  if (ahead) await deleteLayer(parts, ahead.layer)
}

/** One that nobody holds. */
export async function deleteLayer(
  { storage, log }: Pick<ShellParts, 'storage' | 'log'>,
  layer: string,
): Promise<void> {
  await storage
    .delete(layer)
    .catch((error) => log.error({ error, layer }, 'layer not deleted; the next start does it'))
}

export async function listen(parts: ShellParts, shell: Shell): Promise<Link> {
  const socketPath = socketOf(shell)
  rmSync(socketPath, { force: true })
  return listenLink({ socketPath, log: parts.log })
}

const socketOf = (shell: Shell): string => join(shell.linkDir, 'link.sock')

interface ClaimOptions {
  /** It need not be started. */
  ready?: WaitingShell | undefined
  /** It has the root that it is claimed for. */
  isRooted?: boolean
  /** Of one that is started. */
  id?: string
  link?: Link | undefined
  /** It has its root, or nobody wants it any more. */
  onRooted?: () => void
}

/** A shell for one sandbox, whose record names it before it gets the root of that. One that nobody took goes with it. */
export class ShellClaim implements AsyncDisposable {
  readonly id: string
  /** The root that it has and that it was claimed for: the sandbox has to be the one it names. */
  readonly ahead: RootAhead | undefined
  readonly #parts: ShellParts
  #onRooted: (() => void) | undefined
  #waiting: Promise<WaitingShell> | undefined

  constructor(parts: ShellParts, options: ClaimOptions = {}) {
    const { ready, isRooted, id = newId('shell'), link, onRooted } = options
    this.id = ready?.shell.id ?? id
    this.#onRooted = onRooted
    this.ahead = isRooted ? ready?.ahead : undefined
    this.#parts = parts
    this.#waiting = ready ? Promise.resolve(ready) : startShell(parts, this.id, { link })
    this.#waiting.catch(() => {})
  }

  /** Once. */
  take(): Promise<WaitingShell> {
    const waiting = this.#waiting
    if (!waiting) throw new Error(`the shell ${this.id} was taken before`)
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
    if (waiting) await stopShell(this.#parts, waiting)
  }
}
