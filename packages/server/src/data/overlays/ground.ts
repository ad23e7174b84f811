// The source and target of an overlay before anything is copied.
import { posix } from 'node:path'
import { IsletError } from '@islet/contract'
import type { OverlayGround, OverlaySpec } from '../../db/overlays.ts'
import type { Entry, Guest } from '../../guest/guest.ts'
import { hasCode, ignoring } from '../../lib/has-code.ts'
import { isWithin } from '../../lib/is-within.ts'
import { rulesOf } from './copy.ts'

/** Names that are recorded when the target directory exists, so that they can be removed again. */
const MAX_PLACED = 10_000
const REMOVE_ATTEMPTS = 3
const unlessMissing = ignoring('file_not_found')

/** Throws unless the source is a directory, the target is or can become one, and neither lies in the other. */
export async function checkEnds(guest: Guest, { source, root }: OverlaySpec): Promise<void> {
  const entry = await guest.stat(source)
  if (entry.type !== 'directory') throw notDirectory(source)
  await existingDirectory(guest, root)
  const from = await guest.realpath(source)
  const to = await realPlace(guest, root)
  if (isWithin(to, from)) throw nested(`The target ${root} lies in the source ${source}.`)
  if (isWithin(from, to)) throw nested(`The source ${source} lies in the target ${root}.`)
}

/** Records what exists at the target before the first byte is copied. */
export async function surveyGround(guest: Guest, spec: OverlaySpec): Promise<OverlayGround> {
  const found = await existingDirectory(guest, spec.root)
  if (!found) return { root: spec.root, placed: [] }
  const root = await guest.realpath(spec.root)
  const there = new Set(await namesIn(guest, root))
  const { isIgnored } = rulesOf(spec)
  const placed = (await namesIn(guest, spec.source)).filter((name) => !there.has(name) && !isIgnored(name))
  if (placed.length > MAX_PLACED) {
    throw new IsletError(
      'limit_exceeded',
      `${spec.source} has more than ${MAX_PLACED} entries, and ${root} exists already.`,
      { hint: 'Choose a target that does not exist yet.' },
    )
  }
  return { root, existing: { mode: found.mode, owner: `${found.uid}:${found.gid}` }, placed }
}

/** Removes what the overlay created, and nothing that existed before. */
export async function clearGround(guest: Guest, { root, existing, placed }: OverlayGround): Promise<void> {
  const paths = existing ? placed.map((name) => posix.join(root, name)) : [root]
  for (const path of paths) await removeAll(guest, path)
}

/** A copy that was just stopped may still create an entry. */
async function removeAll(guest: Guest, path: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await guest.remove(path, { recursive: true }).catch(unlessMissing)
    } catch (error) {
      if (!hasCode(error, 'directory_not_empty') || attempt === REMOVE_ATTEMPTS) throw error
    }
  }
}

async function existingDirectory(guest: Guest, path: string): Promise<Entry | undefined> {
  const here = await guest.stat(path, { follow: false }).catch(unlessMissing)
  if (!here) return undefined
  // A dangling symlink exists and is not a directory.
  const entry = here.type === 'symlink' ? await guest.stat(path).catch(unlessMissing) : here
  if (entry?.type !== 'directory') throw notDirectory(path)
  return entry
}

async function namesIn(guest: Guest, path: string): Promise<string[]> {
  const { entries, truncated } = await guest.list(path)
  if (truncated) throw new IsletError('limit_exceeded', `${path} has too many entries.`)
  return entries.map((entry) => entry.path)
}

/** Where a path leads, also when its last parts do not exist. */
async function realPlace(guest: Guest, path: string): Promise<string> {
  for (let at = path; ; at = posix.dirname(at)) {
    const real = await guest.realpath(at).catch(at === '/' ? () => '/' : unlessMissing)
    if (real !== undefined) return posix.join(real, posix.relative(at, path))
  }
}

function nested(message: string): IsletError {
  return new IsletError('invalid_path', message, { hint: 'Choose two directories beside each other.' })
}

function notDirectory(path: string): IsletError {
  return new IsletError('not_a_directory', `${path} is not a directory.`)
}
