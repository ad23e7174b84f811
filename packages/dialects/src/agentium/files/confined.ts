// Opens files below one directory and never outside it, while code that is hostile may change that directory.
//
// A path is walked one component at a time. Each directory is opened relative to the open directory above it, without following a symlink;
// a symlink is read and its target is walked in the same way. So no component can be exchanged for a symlink between a check and its use.
// Node has no openat; on Linux, /proc/self/fd/N/name is the same. Elsewhere the components are checked by name, which is safe against
// existing symlinks, but not against a program that exchanges directories at that moment.
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readlink } from 'node:fs/promises'
import { IsletError } from '@islet/sdk'
import { checkPath } from '../checks.ts'
import { errnoOf, fileError, shown } from './errors.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
/** The kernel's own limit. */
const MAX_LINKS = 40
/** An open directory is a file descriptor of this process. */
const MAX_DEPTH = 200

/** What is done with the last component: `at` is a path that the caller may use without following a symlink. */
export type Last<Result> = (at: string) => Promise<Result>

export class Directory implements AsyncDisposable {
  readonly #path: string
  readonly #handle: FileHandle

  /** `path` may lie in a directory that others cannot change, or be the result of `child`. */
  static async open(path: string): Promise<Directory> {
    return new Directory(path, await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
  }

  private constructor(path: string, handle: FileHandle) {
    this.#path = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path
    this.#handle = handle
  }

  /** The directory itself, as long as it is open. */
  get path(): string {
    return this.#path
  }

  child(name: string): string {
    return `${this.#path}/${name}`
  }

  chmod(mode: number): Promise<void> {
    return this.#handle.chmod(mode)
  }

  async stat() {
    return this.#handle.stat()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }
}

export class Confined {
  readonly root: string
  readonly #aliases: readonly string[]

  /** `root` is a real path. `aliases` are other names of it, such as its name in a container. */
  constructor(root: string, aliases: readonly string[] = []) {
    this.root = root
    this.#aliases = aliases
  }

  /** Walks to the last component of `path` and calls `last`. With `parents`, makes missing directories above it. */
  async at<Result>(path: string, last: Last<Result>, { parents = false } = {}): Promise<Result> {
    checkPath(path)
    const stack: Directory[] = []
    try {
      stack.push(await Directory.open(this.root))
      return await this.#walk(path, stack, last, parents)
    } catch (error) {
      throw fileError(error, path)
    } finally {
      for (const directory of stack) await directory[Symbol.asyncDispose]()
    }
  }

  /** Opens a directory; with `make`, makes it and its parents. The caller closes it. */
  directory(path: string, { make = false } = {}): Promise<Directory> {
    return this.at(path, (at) => openDirectory(at, make), { parents: make })
  }

  async #walk<Result>(
    path: string,
    stack: Directory[],
    last: Last<Result>,
    parents: boolean,
  ): Promise<Result> {
    let pending = this.#below(path, path)
    let links = 0
    for (;;) {
      const name = pending.shift()
      if (name === undefined) return await last(stack.at(-1)!.child('.'))
      if (name === '..') {
        if (stack.length === 1) throw outside(path)
        await stack.pop()![Symbol.asyncDispose]()
        continue
      }
      const at = stack.at(-1)!.child(name)
      try {
        if (pending.length === 0) return await last(at)
        if (stack.length > MAX_DEPTH)
          throw new IsletError('invalid_path', `${shown(path)} has more than ${MAX_DEPTH} levels.`)
        stack.push(await openDirectory(at, parents))
      } catch (error) {
        const target = await linkOf(at, error)
        if (target === undefined) throw error
        if (++links > MAX_LINKS) throw new IsletError('invalid_path', `${shown(path)} has too many symlinks.`)
        const rest = this.#below(target, path)
        if (target.startsWith('/')) for (const left of stack.splice(1)) await left[Symbol.asyncDispose]()
        pending = [...rest, ...pending]
      }
    }
  }

  /** The components of a path. An absolute one begins with the root, or with another name of it. */
  #below(path: string, given: string): string[] {
    let rest: string | undefined = path
    if (path.startsWith('/')) {
      const base = [this.root, ...this.#aliases].find((root) => path === root || path.startsWith(`${root}/`))
      rest = base === undefined ? undefined : path.slice(base.length)
    }
    if (rest === undefined) throw outside(given)
    return rest.split('/').filter((name) => name !== '' && name !== '.')
  }
}

async function openDirectory(at: string, make: boolean): Promise<Directory> {
  try {
    return await Directory.open(at)
  } catch (error) {
    if (!make || errnoOf(error) !== 'ENOENT') throw error
    await mkdir(at).catch((failure) => {
      if (errnoOf(failure) !== 'EEXIST') throw failure
    })
    return await Directory.open(at)
  }
}

/** The target of the symlink that made an open fail, or undefined if it failed for another reason. */
async function linkOf(at: string, error: unknown): Promise<string | undefined> {
  // O_NOFOLLOW on a symlink fails with ELOOP, and with O_DIRECTORY also with ENOTDIR; BSD says EMLINK or EFTYPE.
  if (!['ELOOP', 'ENOTDIR', 'EMLINK', 'EFTYPE'].includes(errnoOf(error) ?? '')) return undefined
  try {
    return await readlink(at)
  } catch {
    return undefined
  }
}

function outside(path: string): IsletError {
  return new IsletError('invalid_path', `${shown(path)} leads out of the workspace.`, {
    hint: 'Use a path relative to the workspace. Symlinks may lead only to files in it.',
  })
}
