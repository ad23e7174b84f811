// What the tree of a layer or image may hold. A file may come from anywhere: only what an export writes is let through to tar.
import { LIMITS } from '@islet/contract'
import { damaged, type Entry } from './tar.ts'

/** Overlay's own marks: this directory hides, or goes on as, what is below. Its others name inodes of the machine it was on. */
const OVERLAY_MARKS = ['trusted.overlay.opaque', 'trusted.overlay.redirect']
const XATTRS = ['security.capability', 'system.posix_acl_access', 'system.posix_acl_default']

export interface TreeKind {
  /** Over another tree: it may say what of that is gone. */
  isLayer: boolean
}

/** What tar reads and writes of extended attributes; without root, only what a user may set. */
export function xattrArguments({ isLayer }: TreeKind): string[] {
  if (process.getuid?.() !== 0) return []
  const names = [...XATTRS, 'user.*', ...(isLayer ? OVERLAY_MARKS : [])]
  return ['--xattrs', ...names.map((name) => `--xattrs-include=${name}`)]
}

/** Every entry of one tree, in order: a directory, then what is in it. Each lies in a directory that is being filled. */
export class TreeRules {
  readonly #kind: TreeKind
  readonly #top: string
  /** The directories from the top to the one that is being filled. */
  #open: string[] = []
  entries = 0

  constructor(top: string, kind: TreeKind) {
    this.#top = top
    this.#kind = kind
  }

  check(entry: Entry): void {
    if (++this.entries > LIMITS.snapshotEntries) throw damaged('It holds too many files.')
    const path = entry.type === 'directory' ? entry.path.replace(/\/$/, '') : entry.path
    this.#checkPath(path)
    this.#enter(path, entry.type === 'directory')
    this.#checkType(entry)
    for (const [name, value] of entry.xattrs) this.#checkXattr(entry, name, value)
  }

  #checkPath(path: string): void {
    const isBelow = path === this.#top || path.startsWith(`${this.#top}/`)
    const parts = path.split('/')
    if (!isBelow || path.includes('\0') || parts.some((part) => part === '' || part === '.' || part === '..'))
      throw damaged('A path in it leads elsewhere.')
    if (path.length > LIMITS.pathBytes || parts.some((part) => part.length > 255))
      throw damaged('A path in it is too long.')
  }

  /** So nothing can be written through a link: what was a link is no open directory. */
  #enter(path: string, isDirectory: boolean): void {
    if (this.entries === 1) {
      if (path !== this.#top || !isDirectory) throw damaged('A tree does not begin with its top.')
      this.#open = [path]
      return
    }
    const parent = path.slice(0, path.lastIndexOf('/'))
    while (this.#open.length > 0 && this.#open.at(-1) !== parent) this.#open.pop()
    if (this.#open.length === 0) throw damaged('A path in it does not lie in a directory of its tree.')
    if (isDirectory) this.#open.push(path)
  }

  #checkType({ type, linkPath, device }: Entry): void {
    if (type === 'hardlink') this.#checkPath(linkPath)
    if (
      type === 'symlink' &&
      (linkPath === '' || linkPath.length > LIMITS.pathBytes || linkPath.includes('\0'))
    )
      throw damaged('A link in it leads nowhere.')
    const isWhiteout = type === 'character' && device.major === 0 && device.minor === 0
    if ((type === 'character' || type === 'block') && !(isWhiteout && this.#kind.isLayer))
      throw damaged('It holds a device.')
  }

  #checkXattr({ type }: Entry, name: string, value: string): void {
    if (XATTRS.includes(name) || name.startsWith('user.')) return
    const isMark = this.#kind.isLayer && type === 'directory' && OVERLAY_MARKS.includes(name)
    if (!isMark) throw damaged('It holds an extended attribute that is not known here.')
    if (name.endsWith('.opaque') ? value !== 'y' : !isRedirect(value))
      throw damaged('A mark in it means nothing.')
  }
}

/** A name, or an absolute path. */
function isRedirect(value: string): boolean {
  const parts = (value.startsWith('/') ? value.slice(1) : value).split('/')
  const isRelative = !value.startsWith('/')
  return (
    value.length <= LIMITS.pathBytes &&
    !value.includes('\0') &&
    !(isRelative && parts.length > 1) &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..')
  )
}
