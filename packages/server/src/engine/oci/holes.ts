// Known security holes in the runtimes, for `islet doctor`. An entry exists only if the project names the release that fixes it.
//
// Distributions backport fixes: a program that dpkg installed is judged by the version of its package, and if it is not known
// whether that version has the hole, nothing is reported.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Finding } from './probe.ts'
import { findProgram, runtimeVersion } from './runtime.ts'

type Program = 'runc' | 'crun' | 'runsc'

interface Hole {
  program: Program
  names: readonly string[]
  /** The first fixed release of each release line; later lines never had the hole. */
  mendedIn: readonly string[]
  /** The first release with the hole; default: all. */
  since?: string
  /** By upstream version of a Debian package: the first package version that is not known to have the hole. */
  debian?: Readonly<Record<string, string>>
}

export const HOLES: readonly Hole[] = [
  {
    program: 'runc',
    names: ['CVE-2024-21626'],
    since: '1.0.0',
    mendedIn: ['1.1.12'],
    debian: { '1.1.5+ds1': '1.1.5+ds1-1+deb12u1' },
  },
  {
    program: 'runc',
    names: ['CVE-2025-31133', 'CVE-2025-52565', 'CVE-2025-52881'],
    mendedIn: ['1.2.8', '1.3.3', '1.4.0'],
    debian: { '1.1.5+ds1': '1.1.5+ds1-1+deb12u2', '1.1.15+ds1': '1.1.15+ds1-2+deb13u1' },
  },
  { program: 'crun', names: ['CVE-2026-88264', 'CVE-2026-88265'], mendedIn: ['1.30'] },
  { program: 'runsc', names: ['CVE-2025-2713'], mendedIn: ['20250319.0'] },
]

const MENDS: Record<Program, string> = {
  runc: 'apt-get install --only-upgrade runc, or put a newer one into /usr/local/sbin. With crun, ISLET_RUNTIME_BINARY=crun does without runc.',
  crun: 'Install a newer crun; ISLET_RUNTIME_BINARY=runc does without crun.',
  runsc: 'Put a newer runsc into /usr/local/bin: https://gvisor.dev/docs/user_guide/install says how.',
}

/** One finding for each installed program that is known to have holes. */
export async function probeHoles(): Promise<Finding[]> {
  const found = await Promise.all((['runc', 'crun', 'runsc'] as const).map(holesOfInstalled))
  return found.flat()
}

async function holesOfInstalled(program: Program): Promise<Finding[]> {
  const path = findProgram(program)
  const version = path && (await runtimeVersion(program))
  if (!path || !version) return []
  const packageVersion = await packageVersionOf(path)
  const holes = await holesIn({ program, version, packageVersion })
  if (holes.length === 0) return []
  const told = holes.map(({ names, mendedIn }) => `${names.join(', ')} (mended in ${mendedIn.join(', ')})`)
  const detail = `${program} ${packageVersion ?? version} has known holes: ${told.join('; ')}.`
  return [{ name: `holes in ${program}`, ok: false, optional: true, detail, mend: MENDS[program] }]
}

export interface Installed {
  program: Program
  /** Reported by the program. */
  version: string
  /** The version of its package; undefined if it is not from a package. */
  packageVersion: string | undefined
}

export async function holesIn({ program, version, packageVersion }: Installed): Promise<Hole[]> {
  const possible = HOLES.filter((hole) => hole.program === program && isOlder(version, hole))
  if (packageVersion === undefined) return isRebuilt(version) ? [] : possible
  const upstream = packageVersion.replace(/^\d+:/, '').replace(/-[^-]*$/, '')
  const known = possible.map(async (hole) => {
    const unknownFrom = hole.debian?.[upstream]
    return unknownFrom !== undefined && (await isBefore(packageVersion, unknownFrom)) ? [hole] : []
  })
  return (await Promise.all(known)).flat()
}

/** Built by a distribution, but not installed as a package: its fixes are unknown. */
function isRebuilt(version: string): boolean {
  return /[~+]/.test(version)
}

function isOlder(version: string, { since, mendedIn }: Hole): boolean {
  if (since !== undefined && compare(version, since) < 0) return false
  const line = mendedIn.find((mended) => isSameLine(version, mended))
  return compare(version, line ?? mendedIn.at(-1)!) < 0
}

/** 1.2.3 and 1.2.8 are releases of the line 1.2. */
function isSameLine(version: string, other: string): boolean {
  const [one, two] = [numbersOf(version), numbersOf(other)]
  return one.length > 2 && one[0] === two[0] && one[1] === two[1]
}

/** A pre-release (1.4.0-rc.1, 1.0.0~rc93) counts as its release. */
function compare(version: string, other: string): number {
  const [one, two] = [numbersOf(version), numbersOf(other)]
  for (let at = 0; at < 3; at++) {
    const difference = (one[at] ?? 0) - (two[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** For 1.1.5+ds1, release-20250319.0 and 0.0~20240729.0. */
function numbersOf(version: string): number[] {
  const text = /\d{8}\.\d+/.exec(version)?.[0] ?? /^\d+(\.\d+)*/.exec(version)?.[0] ?? ''
  return text.split('.').map(Number)
}

async function packageVersionOf(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)('dpkg-query', ['--search', path])
    const name = stdout.slice(0, stdout.indexOf(': /'))
    return (await promisify(execFile)('dpkg-query', ['--show', name])).stdout.split('\t')[1]?.trim()
  } catch {
    return undefined // no dpkg, or not its file
  }
}

function isBefore(one: string, other: string): Promise<boolean> {
  return promisify(execFile)('dpkg', ['--compare-versions', one, 'lt', other]).then(
    () => true,
    () => false,
  )
}
