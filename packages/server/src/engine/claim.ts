// Ownership of a directory across processes and kill -9, without locks that outlive a dead process.
//
//   <directory>/<name>.<generation>.json    {pid, startTime, bootId, ...}
//
// The highest generation is the owner. A process takes over from a dead owner by link(2) of a complete file to the next
// generation: exactly one process wins, and there is always an owner.
import { randomUUID } from 'node:crypto'
import { link, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { identify, isRunning, type ProcessIdentity } from '../lib/proc.ts'

export interface Claim<T> {
  generation: number
  owner: ProcessIdentity
  /** Undefined if the file cannot be parsed, which only a damaged disk causes. */
  value: T | undefined
}

const NOBODY: ProcessIdentity = { pid: 0, startTime: 0, bootId: '' }

/** The current owner of `directory`; undefined if there is none. */
export async function readClaim<T>(directory: string, name: string): Promise<Claim<T> | undefined> {
  for (;;) {
    const generation = await highest(directory, name)
    if (generation === 0) return undefined
    try {
      const { owner, value } = JSON.parse(await readFile(fileOf(directory, name, generation), 'utf8'))
      return { generation, owner, value }
    } catch (error) {
      // A newer owner removed it between the two reads: retry.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      return { generation, owner: NOBODY, value: undefined }
    }
  }
}

export function isClaimAlive(claim: Claim<unknown> | undefined): boolean {
  return claim !== undefined && isRunning(claim.owner)
}

/** Makes this process the owner after `previous` (undefined: none). False if another process was faster. */
export async function takeClaim<T>(
  directory: string,
  name: string,
  value: T,
  previous: Claim<unknown> | undefined,
): Promise<boolean> {
  const generation = (previous?.generation ?? 0) + 1
  const temporary = join(directory, `.${name}.${randomUUID()}`)
  await writeDurably(temporary, JSON.stringify({ owner: identify(process.pid), value }))
  try {
    await link(temporary, fileOf(directory, name, generation))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(temporary, { force: true })
  }
  for (let old = generation - 1; old > 0; old--) {
    if (!(await removed(fileOf(directory, name, old)))) break
  }
  return true
}

/** Releases the claim of `takeClaim`. */
export async function dropClaim(directory: string, name: string): Promise<void> {
  await rm(fileOf(directory, name, await highest(directory, name)), { force: true })
}

function fileOf(directory: string, name: string, generation: number): string {
  return join(directory, `${name}.${generation}.json`)
}

async function highest(directory: string, name: string): Promise<number> {
  const pattern = new RegExp(`^${name}\\.(\\d+)\\.json$`)
  const entries = await readdir(directory)
  return entries.reduce((top, entry) => Math.max(top, Number(pattern.exec(entry)?.[1] ?? 0)), 0)
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function removed(path: string): Promise<boolean> {
  try {
    await rm(path)
    return true
  } catch {
    return false
  }
}
