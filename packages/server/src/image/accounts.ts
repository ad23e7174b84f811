// The account every sandbox works as, and how it gets into an image's account files.

export const USER = { name: 'user', uid: 1000, gid: 1000, home: '/home/user' } as const

export const SUDOERS = `Defaults env_reset
Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Defaults !lecture
root ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
`
/** A file of /etc/sudoers.d. The wall is around the sandbox, not inside it. */
export const SUDOERS_USER = `${USER.name} ALL=(ALL:ALL) NOPASSWD: ALL\n`

interface AccountFiles {
  passwd: string
  group: string
  shadow: string
  gshadow: string
}

/** The account files with `user` in them, and where its home is. Existing accounts stay; an existing `user` is kept as it is. */
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

/** Only accounts of the system (files below /usr belong to some of them); people, their names and passwords stay outside. */
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

/** Before the row that has the same id already: the first row of an id is the one that names it. */
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
