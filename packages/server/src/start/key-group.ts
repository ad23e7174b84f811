// Lets the members of one group read the admin key of a server that runs as root.
//
//   <data>             0710 root:islet    members can pass, not list
//   <data>/key         0640 root:islet
//   <data>/islet.sock  0660 root:islet    made anew at every start, by api/http/local-socket.ts
//   <data>/*           closed             the pool holds setuid files with real ids: a member who got there would be root
//
// Without the group all of it is 0700 and 0600.
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_GROUP } from '../config/settings.ts'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'

const THROUGH = 0o710

/** The id of the group that the settings name; undefined when there is none, or when this is not root's server. */
export function groupOfKey({ group }: Pick<Config, 'group'>, log: Pick<Log, 'warn'>): number | undefined {
  if (group === '' || process.geteuid?.() !== 0) return undefined
  const gid = groupId(group)
  if (gid === undefined && group !== DEFAULT_GROUP)
    log.warn({ group }, 'the group of ISLET_GROUP does not exist; only root can read the key')
  return gid
}

/** Lets members of the group pass through the data directory and closes everything else in it; without a `gid` nobody passes. */
export function letThrough(dataDir: string, gid: number | undefined): void {
  const { mode, uid, gid: owningGroup } = statSync(dataDir)
  if (gid === undefined) {
    if ((mode & 0o777) === THROUGH) chmodSync(dataDir, 0o700)
    return
  }
  // An administrator opened the directory to all users: leave it. The server still closes its own files in it.
  if ((mode & 0o007) !== 0) return
  for (const name of readdirSync(dataDir)) if (name !== 'key') closeEntry(join(dataDir, name))
  if (owningGroup !== gid) {
    chmodSync(dataDir, 0o700)
    chownSync(dataDir, uid, gid)
  }
  chmodSync(dataDir, THROUGH)
}

function closeEntry(path: string): void {
  const { mode } = lstatSync(path)
  const isLink = (mode & 0o170000) === 0o120000 // has no mode of its own; where it leads is the administrator's
  if (!isLink && (mode & 0o077) !== 0) chmodSync(path, mode & 0o700)
}

/** Asks getent, which knows all group sources (files, LDAP). */
function groupId(name: string): number | undefined {
  try {
    const line = execFileSync('getent', ['group', name], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const id = Number(line.split(':')[2])
    return Number.isInteger(id) ? id : undefined
  } catch {
    return undefined
  }
}
