// The parts of the machine's /etc that a sandbox may see: only this list. It has no accounts of people, passwords, keys or tokens.
import { constants } from 'node:fs'
import { lstat, open, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { TreeWriter } from '../tree.ts'

/** Files and directories below /etc, copied if they exist. A star matches a part of a name. */
export const ALLOWED: readonly string[] = [
  // for programs and libraries below /usr
  'alternatives',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'ld-musl-*.path',
  'terminfo',
  'fonts',
  'java-*-openjdk',
  'perl',
  'python3',
  'python3.*',
  'vim',
  'nanorc',
  'ImageMagick-*',
  'magic',
  'magic.mime',
  'mime.types',
  // the system's name, time, language and shells
  'os-release',
  'debian_version',
  'lsb-release',
  'localtime',
  'timezone',
  'locale.alias',
  'default/locale',
  'profile',
  'bash.bashrc',
  'inputrc',
  'shells',
  'login.defs',
  'adduser.conf',
  'deluser.conf',
  'debconf.conf',
  'dpkg/dpkg.cfg',
  'dpkg/origins',
  // network tables
  'services',
  'protocols',
  'rpc',
  'ethertypes',
  'host.conf',
  'gai.conf',
  'netconfig',
  'networks',
  'iproute2',
  // certificates, never /etc/ssl/private
  'ssl/certs',
  'ssl/openssl.cnf',
  'ca-certificates',
  'ca-certificates.conf',
  'pki/tls/certs',
  'pki/ca-trust/extracted',
  // package keys; sources are written by apt.ts
  'apt/trusted.gpg',
  'apt/trusted.gpg.d',
  'apt/keyrings',
  // the initial files of a home
  'skel/.bashrc',
  'skel/.profile',
  'skel/.bash_logout',
]

/** Larger than any certificate bundle or cache on the list. */
const MAX_FILE_BYTES = 8 << 20
const SECRET_NAME = /passw|secret|credential|token|\.key$|\.p12$|\.pfx$/i
const SECRET_CONTENT = 'PRIVATE KEY-----'

/** The list with its stars resolved on this machine. */
export async function allowedPaths(hostRoot: string): Promise<string[]> {
  const etc = await readdir(join(hostRoot, 'etc')).catch(() => [])
  return ALLOWED.flatMap((path) => {
    if (!path.includes('*')) return [path]
    const [before = '', after = ''] = path.split('*')
    return etc
      .filter((name) => name.startsWith(before) && name.endsWith(after) && name.length > path.length - 1)
      .sort()
  })
}

export async function copyEtc(hostRoot: string, paths: readonly string[], into: TreeWriter): Promise<void> {
  for (const path of paths) await copy(join(hostRoot, 'etc', path), join('etc', path), into)
}

/** Copies only files that everybody on the machine may read; the others may be secrets. */
async function copy(from: string, to: string, into: TreeWriter): Promise<void> {
  const stat = await lstat(from).catch(() => undefined)
  if (!stat || SECRET_NAME.test(from.slice(from.lastIndexOf('/') + 1))) return
  if (stat.isSymbolicLink()) return into.link(to, await readlink(from))
  if (stat.isDirectory()) {
    if ((stat.mode & 0o005) !== 0o005) return
    await into.dir(to, 0o755)
    await Promise.all((await readdir(from)).map((name) => copy(join(from, name), join(to, name), into)))
    return
  }
  if (!stat.isFile() || (stat.mode & 0o004) === 0 || stat.size > MAX_FILE_BYTES) return
  const content = await readPlain(from)
  if (content.includes(SECRET_CONTENT)) return
  await into.file(to, content, stat.mode & 0o755)
}

async function readPlain(path: string): Promise<Buffer> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}
