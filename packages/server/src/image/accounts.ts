// The account that sandboxes work as, and how it gets into an image's account files.
import type { TreeWriter } from './tree.ts'

export const USER = { name: 'user', uid: 1000, gid: 1000, home: '/home/user' } as const

export const SUDOERS = `Defaults env_reset
Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Defaults !lecture
root ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
`
/** A file of /etc/sudoers.d. It needs no password: the wall is around the sandbox, not inside it. */
export const SUDOERS_USER = `${USER.name} ALL=(ALL:ALL) NOPASSWD: ALL\n`

interface AccountFiles {
  passwd: string
  group: string
  shadow: string
  gshadow: string
}

export async function readAccounts(read: (name: string) => Promise<string>): Promise<AccountFiles> {
  const [passwd = '', group = '', shadow = '', gshadow = ''] = await Promise.all(
    ['passwd', 'group', 'shadow', 'gshadow'].map(read),
  )
  return { passwd, group, shadow, gshadow }
}

export async function writeAccounts(tree: Pick<TreeWriter, 'file'>, files: AccountFiles): Promise<void> {
  const shadow = { uid: 0, gid: Number(/^shadow:[^:]*:(\d+):/m.exec(files.group)?.[1] ?? 0) }
  await tree.file('etc/passwd', files.passwd, 0o644)
  await tree.file('etc/group', files.group, 0o644)
  await tree.file('etc/shadow', files.shadow, 0o640, shadow)
  await tree.file('etc/gshadow', files.gshadow, 0o640, shadow)
}

/** Adds `user` to the account files, and returns its home and ids. Existing accounts, also an existing `user`, stay unchanged. */
export function withUser(
  files: AccountFiles,
  shell: string,
): AccountFiles & { home: string; uid: number; gid: number } {
  const passwd = rows(files.passwd)
  const group = rows(files.group)
  const shadow = rows(files.shadow)
  const gshadow = rows(files.gshadow)
  if (!find(passwd, 'root')) passwd.unshift(`root:x:0:0:root:/root:${shell}`)
  if (!find(group, 'root')) group.unshift('root:x:0:')
  let entry = find(passwd, USER.name)
  if (!entry) {
    const line = `${USER.name}:x:${USER.uid}:${USER.gid}::${USER.home}:${shell}`
    insertBefore(passwd, line, USER.uid)
    entry = line.split(':')
    const own = find(group, USER.name)
    if (!own) insertBefore(group, `${USER.name}:x:${USER.gid}:`, USER.gid)
  }
  for (const name of names(passwd)) if (!find(shadow, name)) shadow.push(`${name}:*:19000:0:99999:7:::`)
  for (const name of names(group)) if (!find(gshadow, name)) gshadow.push(`${name}:*::`)
  const [, , uid, gid, , home] = entry
  return {
    passwd: text(passwd),
    group: text(group),
    shadow: text(shadow),
    gshadow: text(gshadow),
    home: home?.startsWith('/') ? home : USER.home,
    uid: Number(uid),
    gid: Number(gid),
  }
}

/** Keeps only system accounts, which own files below /usr; the accounts and passwords of people are left out. */
export function systemAccounts(files: { passwd: string; group: string }): AccountFiles {
  const isSystem = (id: string | undefined) =>
    /^\d+$/.test(id ?? '') && (Number(id) < 1000 || Number(id) === 65534)
  const passwd: string[] = []
  for (const [name, , uid, gid, , home] of rows(files.passwd).map((row) => row.split(':'))) {
    if (!name || !isSystem(uid) || !isSystem(gid) || name === USER.name) continue
    const root = name === 'root'
    passwd.push(
      `${name}:x:${uid}:${gid}::${root ? '/root' : home}:${root ? '/bin/bash' : '/usr/sbin/nologin'}`,
    )
  }
  const group: string[] = []
  for (const [name, , gid] of rows(files.group).map((row) => row.split(':'))) {
    if (name && isSystem(gid) && name !== USER.name) group.push(`${name}:x:${gid}:`)
  }
  return { passwd: text(passwd), group: text(group), shadow: '', gshadow: '' }
}

/** Inserts the line before a row with the same id, because the first row of an id decides its name. */
function insertBefore(table: string[], line: string, id: number): void {
  const at = table.findIndex((row) => row.split(':')[2] === String(id))
  table.splice(at === -1 ? table.length : at, 0, line)
}

function find(table: string[], name: string): string[] | undefined {
  return table.find((row) => row.startsWith(`${name}:`))?.split(':')
}

function names(table: string[]): string[] {
  return table.map((row) => row.split(':')[0] ?? '').filter((name) => /^[a-z_A-Z0-9][^\s:]*$/.test(name))
}

function rows(content: string): string[] {
  return content.split('\n').filter((row) => row.trim() !== '' && !row.startsWith('#'))
}

function text(table: string[]): string {
  return table.map((row) => `${row}\n`).join('')
}
