// runsc, called through the warden. Its record of a cell stays while the cell exists: pausing and saving need it.
//
//   <runDir>/runsc/<id>_sandbox:<id>.state, .lock, runsc-<id>.sock
import { open, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import type { CellRunFields } from '../../warden/messages.gen.ts'
import type { Warden } from '../../warden/warden.ts'
import { failureReason, runtimeFailure, runtimeRoot } from '../oci/runtime.ts'

export class Runsc {
  readonly #warden: Warden
  readonly #root: string

  constructor(warden: Warden, runDir: string) {
    this.#warden = warden
    this.#root = runtimeRoot('runsc', runDir)
  }

  /** Starts the bundle in `directory`, from saved `memory` if given; returns the pid of its kernel. */
  async run(directory: string, request: CellRunFields, memory: string | undefined): Promise<number> {
    if (memory) await symlink(memory, join(directory, 'memory'))
    const restore = memory ? 1 : 0
    try {
      await this.#warden.request('CELL_RUN', { ...request, restore })
    } catch (error) {
      throw await runtimeFailure(directory, `runsc could not ${restore ? 'wake' : 'start'} a sandbox`, error)
    }
    return Number(await readFile(join(directory, 'pid'), 'utf8'))
  }

  /** Does nothing if the cell is in that state already. */
  async pause(id: string, directory: string, paused: boolean): Promise<void> {
    if ((await this.isPaused(id)) === paused) return
    try {
      await this.#warden.request('CELL_PAUSE', { cell: id, paused: paused ? 1 : 0 })
    } catch (error) {
      if ((await this.isPaused(id)) === paused) return
      throw await runtimeFailure(directory, `runsc could not ${paused ? 'pause' : 'resume'} a sandbox`, error)
    }
  }

  async isPaused(id: string): Promise<boolean> {
    const text = await readFile(join(this.#root, `${id}_sandbox:${id}.state`), 'utf8').catch((cause) => {
      throw new IsletError('sandbox_lost', `runsc does not know the cell ${id}.`, { cause })
    })
    return JSON.parse(text).status === 'paused'
  }

  /** Saves the memory of a paused cell, which stays paused. The files are durable afterwards. */
  async save(id: string, directory: string, memory: string): Promise<void> {
    const link = join(directory, 'memory')
    await rm(link, { force: true })
    await symlink(memory, link)
    try {
      await this.#warden.request('CELL_SAVE', { cell: id })
      await sync(memory)
    } catch (error) {
      for (const name of await readdir(memory)) await rm(join(memory, name))
      throw await saveFailure(directory, error)
    } finally {
      await rm(link, { force: true })
    }
  }

  async forget(id: string): Promise<void> {
    const names = [`${id}_sandbox:${id}.state`, `${id}_sandbox:${id}.lock`, `runsc-${id}.sock`]
    for (const name of names) await rm(join(this.#root, name), { recursive: true, force: true })
  }

  async list(): Promise<string[]> {
    const entries = await readdir(this.#root).catch(() => [])
    const ids = entries.flatMap(
      (entry) => /^(?:runsc-)?([a-z0-9-]+)(?:_sandbox:|\.sock$)/.exec(entry)?.[1] ?? [],
    )
    return [...new Set(ids)]
  }
}

/** gVisor's errors for state that it cannot save, as sentences. A socket to the outside shows up as a nil pointer. */
const UNSAVABLE: readonly [RegExp, string][] = [
  [/deleted and invalidated dentries/, 'a program has a file open that was deleted'],
  [/nil pointer dereference/, 'a program has a connection to this server open'],
]

async function saveFailure(directory: string, error: unknown): Promise<IsletError> {
  const reason = await failureReason(directory, error)
  const known = UNSAVABLE.find(([pattern]) => pattern.test(reason))?.[1]
  const said = known ?? reason.slice(0, 300)
  return new IsletError('invalid_state', `The memory of the sandbox cannot be saved: ${said}.`, {
    cause: error,
  })
}

/** Makes the files durable, and readable for root only: memory contains secrets. */
async function sync(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const file = await open(join(directory, name), 'r+')
    try {
      await file.chmod(0o600)
      await file.sync()
    } finally {
      await file.close()
    }
  }
  const handle = await open(directory)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
