// The directories in which images are made before they are published:
//
//   <images>/.tmp-<pid>-<start time of the pid>-<random>/   one import, removed when it ends
//     image/                                                renamed to <images>/<name> when it is complete
//     claim                                                 the image's name, so that it is not collected before it is used
//
// A directory whose process is gone was left by an interrupted import; collect removes it.
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { readStat } from '../lib/proc.ts'
import { diskFull, runOk } from './run.ts'

const PREFIX = '.tmp-'
/** How often to ask whether another server has made an image. */
const OTHERS_POLL_MS = 200

export interface Staging extends AsyncDisposable {
  path: string
  /** The image directory that is being made. */
  image: string
  /** Keeps collect, in any process, from removing the image of this name until this import ends. */
  claim(name: string): Promise<void>
  /** Resolves when no other import that claimed the same name before, in any process, is still running. */
  first(signal: AbortSignal): Promise<void>
  /** Publishes `image` under its name. An existing image of that name stays, because it may be mounted. */
  commit(name: string, options?: CommitOptions): Promise<void>
}

export interface CommitOptions {
  /**
   * Whether to flush it to disk before it gets its name, so that a power cut leaves a complete image or none. It waits for the
   * whole filesystem, which takes seconds on a busy machine.
   */
  synced?: boolean
}

export async function stage(imagesDir: string): Promise<Staging> {
  const path = join(imagesDir, tempName())
  const image = join(path, 'image')
  await mkdir(image, { recursive: true, mode: 0o700 })
  let claimed: string | undefined
  const claim = async (name: string) => {
    // The time of the first claim decides who waits for whom.
    if (claimed !== name) await writeFile(join(path, 'claim'), name)
    claimed = name
  }
  return {
    path,
    image,
    claim,
    async first(signal) {
      const isBefore = await earlierThan(path)
      for (;;) {
        const others = (await stagings(imagesDir)).filter(({ alive, claim }) => alive && claim === claimed)
        const ahead = await Promise.all(others.map((other) => other.path !== path && isBefore(other.path)))
        if (!ahead.includes(true)) return
        await setTimeout(OTHERS_POLL_MS, undefined, { signal })
      }
    },
    async commit(name, { synced = true } = {}) {
      await claim(name)
      if (synced) await runOk(['sync', '-f', image])
      await rename(image, join(imagesDir, name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
      })
    },
    [Symbol.asyncDispose]: () => removeTree(path),
  }
}

async function earlierThan(own: string): Promise<(path: string) => Promise<boolean>> {
  const timeOf = async (path: string) =>
    (await stat(join(path, 'claim'), { bigint: true }).catch(() => undefined))?.mtimeNs
  const ownTime = (await timeOf(own)) ?? 0n
  return async (path) => {
    const time = await timeOf(path)
    return time !== undefined && (time < ownTime || (time === ownTime && path < own))
  }
}

/** Moves a directory out of sight; the caller removes the returned path. */
export async function discard(imagesDir: string, name: string): Promise<string> {
  const to = join(imagesDir, tempName())
  await rename(join(imagesDir, name), to)
  return to
}

export async function stagings(
  imagesDir: string,
): Promise<{ path: string; alive: boolean; claim?: string }[]> {
  const names = (await readdir(imagesDir)).filter((name) => name.startsWith(PREFIX))
  return Promise.all(
    names.map(async (name) => {
      const path = join(imagesDir, name)
      const claim = await readFile(join(path, 'claim'), 'utf8').catch(() => undefined)
      return { path, alive: isAlive(name), ...(claim && { claim }) }
    }),
  )
}

/** Removes a tree with hostile names and depths; stays on its filesystem. */
export async function removeTree(path: string): Promise<void> {
  await runOk(['rm', '-rf', '--one-file-system', '--', path])
}

export async function treeBytes(path: string): Promise<number> {
  const { stdout } = await runOk(['du', '-s', '-x', '-B1', '--', path])
  return Number.parseInt(stdout, 10)
}

/** Turns ENOSPC and EDQUOT into the error for a full disk. */
export function explainDisk(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'ENOSPC' || code === 'EDQUOT' ? diskFull(error) : error
}

/** A name for `stagings`, which treats it as a leftover once this process is gone. */
export function tempName(): string {
  return `${PREFIX}${process.pid}-${readStat(process.pid)?.startTime}-${randomBytes(6).toString('hex')}`
}

function isAlive(name: string): boolean {
  const [pid = '', start = ''] = name.slice(PREFIX.length).split('-')
  return /^\d+$/.test(pid) && start !== '' && readStat(Number(pid))?.startTime === Number(start)
}
