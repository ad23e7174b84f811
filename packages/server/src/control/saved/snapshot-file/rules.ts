// What the tree of a layer or image may hold. The file is not trusted: only entries that an export writes are passed on to tar.
import { LIMITS } from '@islet/contract'
import { damaged, type Entry } from './tar.ts'

/** Marks of overlayfs: this directory hides the one below, or has moved. Its other marks name inodes of the source machine. */
const OVERLAY_MARKS = ['trusted.overlay.opaque', 'trusted.overlay.redirect']
const XATTRS = ['security.capability', 'system.posix_acl_access', 'system.posix_acl_default']

export interface TreeKind {
  /** A tree over another one: it may hold whiteouts. */
  isLayer: boolean
}

/** The extended attributes that tar reads and writes; none without root. */
export function xattrArguments({ isLayer }: TreeKind): string[] {
  if (process.getuid?.() !== 0) return []
  const names = [...XATTRS, 'user.*', ...(isLayer ? OVERLAY_MARKS : [])]
  return ['--xattrs', ...names.map((name) => `--xattrs-include=${name}`)]
}

/** Checks the entries of one tree in order. A directory comes before its entries, which follow it without gaps. */
export class TreeRules {
  readonly #kind: TreeKind
  readonly #top: string
  /** The directories from the top to the one whose entries follow. */
  #open: string[] = []
  entries = 0

  constructor(top: string, kind: TreeKind) {
    this.#top = top
    this.#kind = kind
  }

  check(entry: Entry): void {
    if (++this.entries > LIMITS.snapshotEntries) throw damaged('The snapshot holds too many files.')
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
      throw damaged('A path leads out of its tree.')
    if (path.length > LIMITS.pathBytes || parts.some((part) => part.length > 255))
      throw damaged('A path is too long.')
  }

  /** The parent must be an open directory, so nothing can be written through a link. */
  #enter(path: string, isDirectory: boolean): void {
    if (this.entries === 1) {
      if (path !== this.#top || !isDirectory) throw damaged('A tree does not begin with its top directory.')
      this.#open = [path]
      return
    }
    const parent = path.slice(0, path.lastIndexOf('/'))
    while (this.#open.length > 0 && this.#open.at(-1) !== parent) this.#open.pop()
    if (this.#open.length === 0) throw damaged('A path is not in a directory of its tree.')
    if (isDirectory) this.#open.push(path)
  }

  #checkType({ type, linkPath, device }: Entry): void {
    if (type === 'hardlink') this.#checkPath(linkPath)
    if (
      type === 'symlink' &&
      (linkPath === '' || linkPath.length > LIMITS.pathBytes || linkPath.includes('\0'))
    )
      throw damaged('A symlink has no valid target.')
    const isWhiteout = type === 'character' && device.major === 0 && device.minor === 0
    if ((type === 'character' || type === 'block') && !(isWhiteout && this.#kind.isLayer))
      throw damaged('The snapshot holds a device.')
  }

  #checkXattr({ type }: Entry, name: string, value: string): void {
    if (XATTRS.includes(name) || name.startsWith('user.')) return
    const isMark = this.#kind.isLayer && type === 'directory' && OVERLAY_MARKS.includes(name)
    if (!isMark) throw damaged('The snapshot holds an unknown extended attribute.')
    if (name.endsWith('.opaque') ? value !== 'y' : !isRedirect(value))
      throw damaged('An overlay mark has an invalid value.')
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
