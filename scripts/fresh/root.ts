// The root file system of a new machine: a minimal Debian, Node 20, and this machine's settings for its registries.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, cpSync, existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { localAuthorities } from '../../packages/server/src/image/authorities.ts'
import {
  type AptSource,
  aptOptions,
  aptSources,
  archiveOf,
  mirrorOf,
  suiteOf,
} from '../../packages/server/src/image/debian/apt.ts'
import { cacheEntry } from '../../packages/server/src/image/testing.ts'

export interface RootOptions {
  suite?: string | undefined
  /** Lines for sources.list, instead of what this machine has for the suite. */
  source?: string[] | undefined
}

/** The certificates in a new root with which npm trusts the registry before anything is installed. */
export const AUTHORITIES = '/etc/islet-fresh-authorities.crt'
const HOSTS = '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n'
const NODE = ['node@20', 'npm@10']

export async function makeRoot(root: string, options: RootOptions): Promise<void> {
  const { archive, node } = await parts(options)
  mkdirSync(root, { mode: 0o755 })
  run('tar', ['--extract', '--numeric-owner', '--file', archive, '--directory', root])
  const local = join(root, 'usr/local')
  // A file, not a link: npm finds the place of global packages from where its Node is.
  copyFileSync(join(node, 'lib/node_modules/node/bin/node'), join(local, 'bin/node'))
  cpSync(join(node, 'lib/node_modules/npm'), join(local, 'lib/node_modules/npm'), { recursive: true })
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name))
  writeFileSync(join(root, 'etc/hosts'), HOSTS)
  copyFileSync(resolvConf(), join(root, 'etc/resolv.conf'))
  for (const { path, content } of await localAuthorities()) write(root, path, content)
  for (const [setting, to] of [
    ['userconfig', 'root/.npmrc'],
    ['globalconfig', 'usr/local/etc/npmrc'],
  ] as const) {
    const from = npmSetting(setting)
    if (from && existsSync(from)) copy(from, join(root, to))
  }
  const authorities = npmSetting('cafile') ?? process.env.NODE_EXTRA_CA_CERTS
  if (authorities) copy(authorities, join(root, AUTHORITIES))
}

/** The file of this machine that names nameservers which are not on its loopback, if there is one. */
export function resolvConf(): string {
  const real = '/run/systemd/resolve/resolv.conf'
  return existsSync(real) ? real : '/etc/resolv.conf'
}

/** A tar of the bare system and a directory with Node, kept between runs. */
async function parts({ suite: wanted, source }: RootOptions): Promise<{ archive: string; node: string }> {
  const all = await aptSources()
  const suite = wanted ?? suiteOf(all) ?? 'bookworm'
  const sources = source?.map((line) => `${line}\n`).join('') ?? sourcesOf(all, suite)
  const aptConf = [...(await aptOptions({ onHost: true })), 'Acquire::Languages "none";'].join('\n')
  const definition = createHash('sha256')
    .update(JSON.stringify([suite, sources, aptConf, NODE]))
    .digest('hex')
  const entry = await cacheEntry(
    process.env.ISLET_TEST_CACHE ?? '/var/cache/islet-test',
    `fresh-${definition.slice(0, 16)}`,
  )
  const [archive, node] = [join(entry, 'root.tar'), join(entry, 'node')]
  if (!existsSync(archive)) {
    writeFileSync(join(entry, 'sources'), sources)
    writeFileSync(join(entry, 'apt.conf'), aptConf, { mode: 0o600 })
    // Ubuntu does not mark apt as essential, but every machine has it.
    const include = ['apt', ...(sources.includes('https:') ? ['ca-certificates'] : [])]
    const options = [
      '--variant=minbase',
      '--format=tar',
      `--aptopt=${join(entry, 'apt.conf')}`,
      `--include=${include.join(',')}`,
    ]
    run('mmdebstrap', [...options, suite, `${archive}.new`, join(entry, 'sources')])
    renameSync(`${archive}.new`, archive)
  }
  if (!existsSync(node)) {
    run('npm', ['install', '--global', '--prefix', `${node}.new`, ...NODE])
    renameSync(`${node}.new`, node)
  }
  return { archive, node }
}

/** The apt sources of this machine for the suite, else the main archive of its own suite. */
function sourcesOf(all: readonly AptSource[], suite: string): string {
  const own = archiveOf(all, suite)
  if (own.length > 0) return own.map(({ content }) => content).join('\n')
  const mirror = mirrorOf(archiveOf(all, suiteOf(all) ?? ''))
  if (!mirror) throw new Error(`The apt sources of this machine name no archive for ${suite}; --source does.`)
  return `deb ${mirror} ${suite} main\n`
}

function npmSetting(name: string): string | undefined {
  const value = execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim()
  return value === '' || value === 'null' || value === 'undefined' ? undefined : value
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(from, to)
}

function write(root: string, path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), content)
}

function run(program: string, args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 2, 2] })
}
