// What runs, written to a directory: where the engine can, and where what runs lets it.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { spareBytes } from '../storage/room.ts'
import type { Fleet } from './fleet.ts'
import type { Machine } from './machine.ts'

/** Programs have just lost their connections to this server, and some have not noticed when they are frozen. */
const ATTEMPTS = 4
const AGAIN_MS = 50

/** Of a frozen one whose link is suspended; it stays frozen. False: it cannot be saved, and nothing is left of the attempt. */
export async function saveMemory(
  { engine, log }: Pick<Fleet, 'engine' | 'log'>,
  { shell }: Machine,
  directory: string,
): Promise<boolean> {
  const { memoryBytes } = await engine.usage(shell).catch(() => ({ memoryBytes: 0 }))
  if (!(await hasRoom(directory, memoryBytes))) {
    log.warn({ shell: shell.id, memoryBytes }, 'memory not saved: there is no room for it on the disk')
    return false
  }
  for (let attempt = 1; ; attempt++) {
    try {
      await engine.saveMemory(shell, directory)
      return true
    } catch (error) {
      await rm(directory, { recursive: true, force: true })
      if (attempt === ATTEMPTS) {
        log.warn({ error, shell: shell.id }, 'memory not saved')
        return false
      }
    }
    await engine.thaw(shell)
    await setTimeout(AGAIN_MS)
    await engine.freeze(shell)
    await mkdir(directory, { recursive: true, mode: 0o700 })
  }
}

/** Beside the memory of others lie the server's own records: whoever can make checkpoints must not fill that disk. */
export async function hasRoom(directory: string, bytes: number): Promise<boolean> {
  const spare = await mkdir(directory, { recursive: true, mode: 0o700 }).then(
    () => spareBytes([directory]),
    () => 0,
  )
  if (spare > bytes) return true
  await rm(directory, { recursive: true, force: true })
  return false
}

/** In the shell it has. */
export async function reconnect({ engine }: Pick<Fleet, 'engine'>, { guest, shell }: Machine): Promise<void> {
  await guest.resume(join(shell.linkDir, 'link.sock'))
  await engine.ownSocket(shell)
}
