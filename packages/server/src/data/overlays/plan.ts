// What becomes of each entry of a template: copied, linked or left out.
import type { Entry } from '../../guest/guest.ts'

/** Directories that tools fill and nobody edits. */
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
  /** Of a path below the source. */
  isIgnored(path: string): boolean
}

/** Paths are below the directory that was listed. */
export interface Plan {
  /** What the copy leaves out: the ignored, the linked and the later ones. */
  skip: string[]
  ignored: string[]
  linked: string[]
  /** Directories that are copied on their own. */
  later: string[]
  /** What the copy takes. */
  files: number
  directories: number
}

/**
 * `entries` come depth first, each directory before what is in it. With `perDirectory` they are children only, and their
 * directories are for later.
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
