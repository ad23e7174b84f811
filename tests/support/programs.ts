// The programs that tests start on this machine, or inside sandboxes of the runtime `host`, which find them in the machine's /usr.
// scripts/check-programs.ts compares these tables with the tests and with what scripts/setup installs.
import { execFileSync } from 'node:child_process'
import { accessSync, constants, copyFileSync, mkdirSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

/** On every Debian and Ubuntu, however small: programs of packages that are essential or required. */
export const MINIMAL = new Set(
  [
    'bash cat chmod cp date diff dpkg-deb dpkg-query env fallocate find flock getent grep groupadd groupdel gzip ldd losetup ls mkfifo mount mv',
    'nsenter printf prlimit rm script sed seq setpriv sh sha256sum sleep stat sync tar timeout true truncate umount unshare which',
  ].flatMap((line) => line.split(' ')),
)

/** Tests that use these are skipped without them. */
export const OPTIONAL = new Set(['systemd-analyze', 'dockerd', 'docker'])

/** The Debian package of each other program. A test file that uses one of them says so: `needs('curl')`. */
export const PACKAGES = {
  btrfs: 'btrfs-progs',
  chromium: 'chromium',
  clang: 'clang',
  curl: 'curl',
  'docker-registry': 'docker-registry',
  gcc: 'gcc',
  getcap: 'libcap2-bin',
  git: 'git',
  ip: 'iproute2',
  less: 'less',
  make: 'make',
  'mkfs.btrfs': 'btrfs-progs',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  nft: 'nftables',
  openssl: 'openssl',
  pgrep: 'procps',
  pkill: 'procps',
  ps: 'procps',
  python3: 'python3',
  runc: 'runc',
  setcap: 'libcap2-bin',
  skopeo: 'skopeo',
  sudo: 'sudo',
  sysctl: 'procps',
  tmux: 'tmux',
  umoci: 'umoci',
  vim: 'vim',
  xz: 'xz-utils',
  zstd: 'zstd',
} as const

export type Program = keyof typeof PACKAGES

/** At the top of a test file: the file fails with the name of the package when a program is missing, instead of with a riddle later. */
export function needs(...programs: Program[]): void {
  const directories = (process.env.PATH ?? '').split(delimiter)
  const missing = programs.filter(
    (program) => !directories.some((directory) => isProgram(join(directory, program))),
  )
  if (missing.length === 0) return
  const packages = [...new Set(missing.map((program) => PACKAGES[program]))]
  throw new Error(
    `These tests need ${missing.join(', ')}: apt-get install ${packages.join(' ')} (scripts/setup --test does).`,
  )
}

/** Puts a program of this machine and the libraries it loads at the same paths below `root`. */
export function copyProgram(program: string, root: string): void {
  const libraries = execFileSync('ldd', [program], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
  for (const path of [program, ...libraries]) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    copyFileSync(path, join(root, path))
  }
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
