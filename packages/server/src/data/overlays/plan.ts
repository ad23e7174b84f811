// Decides for each entry of a template: copy, link or ignore.
import type { Entry } from '../../guest/guest.ts'

/** Directories that tools fill and people do not edit. */
const IMMUTABLE = new Set([
  'node_modules',
  'bower_components',
  '.pnpm-store',
  '.venv',
  'venv',
  '__pypackages__',
  'vendor',
  'Pods',
])

export interface Rules {
  isSmart: boolean
  /** For a path relative to the source. */
  isIgnored(path: string): boolean
}

/** Paths are relative to the listed directory. */
export interface Plan {
  /** Left out of the copy: `ignored`, `linked` and `later`. */
  skip: string[]
  ignored: string[]
  linked: string[]
  /** Directories that are copied separately. */
  later: string[]
  /** Entries in the copy. */
  files: number
  directories: number
}

/**
 * `entries` are depth first, each directory before its content. With `perDirectory` they are direct children only, and the
 * directories among them go into `later`.
 */
export function planDirectory(
  entries: readonly Entry[],
  rules: Rules,
  options: { below: string; perDirectory: boolean },
): Plan {
  const plan: Plan = { skip: [], ignored: [], linked: [], later: [], files: 0, directories: 0 }
  let inside: string | undefined
  for (const { path, type } of entries) {
    if (inside !== undefined && path.startsWith(inside)) continue
    const list = listFor(path, type)
    if (list) {
      list.push(path)
      plan.skip.push(path)
      inside = `${path}/`
    } else if (type === 'directory') plan.directories++
    else plan.files++
  }
  return plan

  function listFor(path: string, type: Entry['type']): string[] | undefined {
    if (rules.isIgnored(options.below === '' ? path : `${options.below}/${path}`)) return plan.ignored
    if (type !== 'directory') return undefined
    if (rules.isSmart && IMMUTABLE.has(path.slice(path.lastIndexOf('/') + 1))) return plan.linked
    return options.perDirectory ? plan.later : undefined
  }
}
