// Reads files of an unpacked image. Its symlinks are hostile: they are resolved here, within its root, never by the kernel.
import { constants } from 'node:fs'
import { lstat, open, readlink } from 'node:fs/promises'
import { join } from 'node:path'

/** The kernel's limit. */
const MAX_LINKS = 40

/**
 * Resolves a path inside the root to a path relative to it without symlinks. Parts that do not exist stay unchanged; `last:
 * 'keep'` does not follow a symlink in the last part. Undefined if symlinks form a loop.
 */
export async function resolveInside(
  root: string,
  path: string,
  last: 'follow' | 'keep' = 'follow',
): Promise<string | undefined> {
  const todo = parts(path)
  const done: string[] = []
  let links = 0
  while (todo.length > 0) {
    const part = todo.shift()!
    if (part === '..') {
      done.pop()
      continue
    }
    const here = join(root, ...done, part)
    const stat = await lstat(here).catch(() => undefined)
    if (!stat?.isSymbolicLink() || (last === 'keep' && todo.length === 0)) {
      done.push(part)
      continue
    }
    if (++links > MAX_LINKS) return undefined
    const target = await readlink(here)
    if (target.startsWith('/')) done.length = 0
    todo.unshift(...parts(target))
  }
  return done.join('/')
}

/** The text of a regular file inside the root; empty if there is none or it is too large. */
export async function readInside(root: string, path: string, maxBytes = 1 << 20): Promise<string> {
  const real = await resolveInside(root, path)
  if (real === undefined) return ''
  // Non-blocking, because it may be a fifo.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await open(join(root, real), flags).catch(() => undefined)
  if (!handle) return ''
  try {
    const stat = await handle.stat()
    return stat.isFile() && stat.size <= maxBytes ? await handle.readFile('utf8') : ''
  } finally {
    await handle.close()
  }
}

/** The stat of what the path leads to inside the root. */
export async function statInside(root: string, path: string) {
  const real = await resolveInside(root, path)
  return real === undefined ? undefined : lstat(join(root, real)).catch(() => undefined)
}

function parts(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.')
}
