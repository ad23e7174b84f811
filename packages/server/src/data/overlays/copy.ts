// Copies a template. A tree that fits into one list is one copy request; a larger one is copied directory by directory.
import { posix } from 'node:path'
import { IsletError, LIMITS, type OverlayInfo } from '@islet/contract'
import type { OverlayGround, OverlaySpec } from '../../db/overlays.ts'
import type { Guest } from '../../guest/guest.ts'
import { hasCode } from '../../lib/has-code.ts'
import { createIgnore } from '../files/globs.ts'
import { type Plan, planDirectory, type Rules } from './plan.ts'

/** More levels than any path has. */
const ALL_LEVELS = 4096
/** Bytes of the paths that one copy leaves out: they are sent in one message. */
const MAX_SKIP_BYTES = 512 * 1024
const MAX_SKIPPED = 1000

export interface Copying {
  guest: Guest
  spec: OverlaySpec
  ground: OverlayGround
  /** Updated during the copy. */
  stats: OverlayInfo['stats']
  owner: string | undefined
  signal: AbortSignal
}

/** Idempotent: a second run gives the same result. */
export async function copyTemplate({ guest, spec, ground, stats, owner, signal }: Copying): Promise<void> {
  const source = await guest.realpath(spec.source)
  const rules = rulesOf(spec)
  await guest.mkdir(posix.dirname(ground.root), { parents: true, owner })
  const waiting = ['']
  for (let below = waiting.pop(); below !== undefined; below = waiting.pop()) {
    signal.throwIfAborted()
    const from = posix.join(source, below)
    const to = posix.join(ground.root, below)
    const plan = await planOf(from, below)
    await guest.copy(from, to, { recursive: true, overwrite: true, owner, skip: plan.skip, signal })
    for (const path of plan.linked) {
      const isLinked = await link(posix.join(from, path), posix.join(to, path))
      if (isLinked) stats.linkedDirs++
      else plan.later.push(path)
    }
    count(plan, below)
    waiting.push(...plan.later.map((path) => posix.join(below!, path)))
  }
  const { existing } = ground
  if (!existing) return
  await guest.chmod(ground.root, existing.mode)
  await guest.chown(ground.root, existing.owner)

  async function planOf(from: string, below: string): Promise<Plan> {
    const whole = await guest.list(from, { depth: ALL_LEVELS, signal })
    const plan = planDirectory(whole.entries, rules, { below, perDirectory: false })
    if (!whole.truncated && fits(plan)) return plan
    const { entries, truncated } = await guest.list(from, { depth: 1, signal })
    const shallow = planDirectory(entries, rules, { below, perDirectory: true })
    if (!truncated && fits(shallow)) return shallow
    throw new IsletError(
      'limit_exceeded',
      `${from} has too many entries for one directory: at most ${LIMITS.listEntries}, and ${MAX_SKIP_BYTES} bytes in the names of directories and of what is left out.`,
    )
  }

  /** False: a directory exists there, so it is filled like any other. */
  async function link(from: string, to: string): Promise<boolean> {
    try {
      await guest.symlink(to, from)
    } catch (error) {
      if (!hasCode(error, 'file_exists')) throw error
      const { type } = await guest.stat(to, { follow: false })
      if (type === 'directory') return false
      if (type !== 'symlink') throw error
      await guest.remove(to)
      await guest.symlink(to, from)
    }
    return true
  }

  function count(plan: Plan, below: string): void {
    stats.copiedFiles += plan.files
    stats.copiedDirs += plan.directories + plan.later.length
    const room = MAX_SKIPPED - stats.skipped.length
    stats.skipped.push(...plan.ignored.slice(0, room).map((path) => posix.join(below, path)))
  }
}

export function rulesOf({ source, ignore, strategy }: OverlaySpec): Rules {
  const isIgnored = createIgnore(ignore, source)
  return { isSmart: strategy === 'smart', isIgnored: (path) => isIgnored(posix.join(source, path)) }
}

function fits({ skip }: Plan): boolean {
  return skip.reduce((sum, path) => sum + Buffer.byteLength(path) + 8, 0) <= MAX_SKIP_BYTES
}
