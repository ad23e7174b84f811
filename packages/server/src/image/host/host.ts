// The runtime `host`: a small generated root (links, /etc by allow-list, empty homes) with the machine's own /usr mounted in it.
import { createHash } from 'node:crypto'
import { lstatSync, readdirSync } from 'node:fs'
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { SUDOERS, SUDOERS_USER, systemAccounts, USER, withUser, writeAccounts } from '../accounts.ts'
import { aptOptions, aptSources, writeAptSettings } from '../debian/apt.ts'
import type { ImageDefaults, Tree } from '../image.ts'
import { runOk } from '../run.ts'
import { COMMON_ETC, type TreeWriter, treeWriter } from '../tree.ts'
import { copyPackages, DPKG_HINT } from './dpkg.ts'
import { allowedPaths, copyEtc } from './etc.ts'

/** Raise it when a change here makes a different root from the same machine. */
const GENERATION = 6
const TOP_LINKS = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'] as const
/** Parts of /lib that no sandbox needs, on machines where /lib is not a link. */
const UNUSED = ['modules', 'firmware']

export const HOST_DEFAULTS: ImageDefaults = {
  user: USER.name,
  workdir: USER.home,
  env: {
    PATH: `${USER.home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    LANG: 'C.UTF-8',
  },
}

/** `shadowed`: the image has its own tree `usr` with replacements for files of the machine. */
export function hostTrees(name: string, { shadowed = false } = {}): Tree[] {
  const lower = (tree: string) => ({ kind: 'image', name, tree }) as const
  return [
    { tree: 'root', at: '/', lowers: [lower('root')] },
    { tree: 'usr', at: '/usr', lowers: [...(shadowed ? [lower('usr')] : []), { kind: 'host-usr' }] },
  ]
}

/** Changes whenever the generated root would. It takes a few dozen stats, cheap enough for every `resolve`. */
export function hostFingerprint(hostRoot: string, paths: readonly string[]): string {
  const hash = createHash('sha256').update(`host ${GENERATION} ${hostRoot}\n`)
  const seen = [
    'etc/passwd',
    'etc/group',
    'etc/apt/sources.list',
    'etc/apt/sources.list.d',
    'etc/apt/apt.conf.d',
    // An upgrade of the machine's packages changes these, and with them the programs that the image shadows.
    'usr/bin/ping',
    'var/lib/dpkg/status',
  ]
  const inputs = [
    ...TOP_LINKS,
    ...seen,
    'etc/ssl/certs/ca-certificates.crt',
    ...paths.map((path) => `etc/${path}`),
  ]
  for (const path of inputs) {
    const stat = lstatSync(join(hostRoot, path), { throwIfNoEntry: false })
    if (stat) hash.update(`${path} ${stat.mode} ${stat.size} ${stat.mtimeMs}\n`)
  }
  return hash.digest('hex')
}

export async function buildHostRoot(hostRoot: string, root: string): Promise<void> {
  if (process.getuid?.() !== 0) {
    throw new IsletError('not_supported', 'Only root can make images: their files have many owners.')
  }
  const tree = treeWriter(root)
  await tree.dir('.', 0o755)
  await directories(tree)
  await topLinks(hostRoot, root, tree)
  await copyEtc(hostRoot, await allowedPaths(hostRoot), tree)
  await accounts(hostRoot, tree)
  await systemFiles(tree)
  await home(root, tree)
  await copyPackages(hostRoot, root, tree)
  await writeAptSettings(tree, {
    sources: await aptSources(hostRoot),
    options: [...(hostRoot === '/' ? await aptOptions() : []), DPKG_HINT],
  })
}

/**
 * Hides /usr/local/etc, settings of the machine's own programs that may contain secrets, by a whiteout in `into`, which is mounted
 * above the machine's /usr. Returns whether there is one.
 */
export async function hideLocalSettings(hostRoot: string, into: string): Promise<boolean> {
  const local = await lstat(join(hostRoot, 'usr/local')).catch(() => undefined)
  if (!local?.isDirectory()) return false
  const tree = treeWriter(into)
  await tree.dir('.', 0o755)
  await tree.dir('local', local.mode & 0o7777, local)
  await runOk(['mknod', join(into, 'local/etc'), 'c', '0', '0'])
  return true
}

/** Programs that users expect in a sandbox and this machine lacks, as sentences for the log. */
export function hostGaps(hostRoot: string): string[] {
  const bin = new Set(readdirSync(join(hostRoot, 'usr/bin')))
  return ['sudo', 'python3', 'bash']
    .filter((name) => !bin.has(name))
    .map(
      (name) =>
        `This machine has no /usr/bin/${name}, so sandboxes of the runtime host have none; scripts/setup installs it.`,
    )
}

async function directories(tree: TreeWriter): Promise<void> {
  const plain = [
    'usr',
    'etc',
    'proc',
    'sys',
    'dev',
    'run',
    '.islet',
    'home',
    'opt',
    'srv',
    'mnt',
    'media',
    'boot',
    'var',
  ]
  for (const path of plain) await tree.dir(path, 0o755)
  const below = [
    'backups',
    'cache/apt/archives/partial',
    'cache/ldconfig',
    'lib/apt/lists/partial',
    'lib/misc',
    'lib/pam',
    'local',
    'log/apt',
    'mail',
    'opt',
    'spool',
  ]
  for (const path of below) await tree.dir(`var/${path}`, 0o755)
  for (const path of ['alternatives', 'info', 'parts', 'triggers', 'updates'])
    await tree.dir(`var/lib/dpkg/${path}`, 0o755)
  await tree.file('var/lib/dpkg/available', '', 0o644)
  for (const path of ['tmp', 'var/tmp', 'run/lock']) await tree.dir(path, 0o1777)
  await tree.link('var/run', '/run')
  await tree.link('var/lock', '/run/lock')
  await tree.dir('root', 0o700)
  await tree.dir('workspace', 0o777, USER)
}

async function topLinks(hostRoot: string, root: string, tree: TreeWriter): Promise<void> {
  for (const name of TOP_LINKS) {
    const from = join(hostRoot, name)
    const stat = await lstat(from).catch(() => undefined)
    if (stat?.isSymbolicLink()) await tree.link(name, await readlink(from))
    if (!stat?.isDirectory()) continue
    // Not merged into /usr on this machine: only /usr is mounted, so this directory is copied.
    await tree.dir(name, 0o755)
    for (const entry of await readdir(from)) {
      if (!UNUSED.includes(entry))
        await runOk(['cp', '-a', '--reflink=auto', '--', join(from, entry), join(root, name, entry)])
    }
  }
}

async function accounts(hostRoot: string, tree: TreeWriter): Promise<void> {
  const read = (name: string) => readFile(join(hostRoot, 'etc', name), 'utf8').catch(() => '')
  const files = withUser(
    systemAccounts({ passwd: await read('passwd'), group: await read('group') }),
    '/bin/bash',
  )
  await writeAccounts(tree, files)
}

/** Written, not copied: the machine's own files may name directories, servers and modules that do not exist inside. */
async function systemFiles(tree: TreeWriter): Promise<void> {
  const text: Record<string, string> = {
    ...COMMON_ETC,
    'resolv.conf': '',
    'machine-id': '',
    fstab: '',
    environment: '',
    subuid: '',
    subgid: '',
    'nsswitch.conf':
      'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n',
  }
  for (const [name, content] of Object.entries(text)) await tree.file(`etc/${name}`, content, 0o644)
  await tree.link('etc/mtab', '/proc/mounts')
  await tree.dir('etc/profile.d', 0o755)
  await tree.dir('etc/sudoers.d', 0o750)
  await tree.file('etc/sudoers', SUDOERS, 0o440)
  await tree.file('etc/sudoers.d/islet', SUDOERS_USER, 0o440)
  await tree.file('etc/sudo.conf', '', 0o644)
  for (const kind of ['auth', 'account', 'password', 'session']) {
    await tree.file(`etc/pam.d/common-${kind}`, `${kind} required pam_unix.so\n`, 0o644)
  }
  await tree.file('etc/pam.d/common-session-noninteractive', 'session required pam_unix.so\n', 0o644)
  const stack = ['auth', 'account', 'password', 'session'].map((kind) => `@include common-${kind}\n`).join('')
  for (const name of ['other', 'passwd', 'chsh', 'chfn', 'login'])
    await tree.file(`etc/pam.d/${name}`, stack, 0o644)
  for (const name of ['sudo', 'sudo-i', 'su', 'su-l', 'runuser', 'runuser-l']) {
    await tree.file(`etc/pam.d/${name}`, `auth sufficient pam_rootok.so\n${stack}`, 0o644)
  }
}

async function home(root: string, tree: TreeWriter): Promise<void> {
  const skel = join(root, 'etc/skel')
  await tree.dir('etc/skel', 0o755)
  await tree.dir('home/user', 0o755, USER)
  for (const entry of await readdir(skel, { withFileTypes: true })) {
    if (!entry.isFile()) continue
    const content = await readFile(join(skel, entry.name))
    await tree.file(`home/user/${entry.name}`, content, 0o644, USER)
    if (entry.name !== '.bash_logout') await tree.file(`root/${entry.name}`, content, 0o644)
  }
}
