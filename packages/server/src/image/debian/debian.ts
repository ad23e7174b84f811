// The runtime `base`: a Debian (or Ubuntu) with the usual tools, made by mmdebstrap from the package archive of this machine, and
// current Node from the npm registry of this machine.
import { createHash } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { exists } from '../../lib/exists.ts'
import { readAccounts, SUDOERS_USER, USER, withUser, writeAccounts } from '../accounts.ts'
import { type Authority, localAuthorities, trusting } from '../authorities.ts'
import { dropFileCapabilities } from '../file-capabilities.ts'
import type { Image, ImageDefaults } from '../image.ts'
import { type Job, publish } from '../job.ts'
import { runOk } from '../run.ts'
import { removeTree } from '../staging.ts'
import { COMMON_ETC, type TreeWriter, treeWriter } from '../tree.ts'
import {
  type AptSettings,
  aptOptions,
  aptSources,
  archiveOf,
  keyringsOf,
  suiteOf,
  writeAptSettings,
} from './apt.ts'
import { bootstrap, LEFTOVERS } from './bootstrap.ts'
import { fetchNode, installNode, nodePackages, npmRegistry } from './node.ts'

/** Raise it when a change here makes a different base from the same archive. */
const GENERATION = 4
const PACKAGES = [
  ...['python3', 'python3-pip', 'python3-venv', 'git', 'curl', 'wget', 'jq', 'ripgrep', 'sudo', 'bash'],
  ...['ca-certificates', 'procps', 'iproute2', 'iputils-ping', 'less', 'vim-tiny'],
  ...['xz-utils', 'zstd', 'unzip'],
  // For Python and Node packages that are compiled during their installation.
  ...['gcc', 'g++', 'make', 'pkg-config', 'python3-dev'],
]
/** The packages whose versions the image reports. */
const TOLD = { python: 'python3', git: 'git', gcc: 'gcc' }
/** They stay in the image, for packages that are installed later. */
const DPKG_OPTIONS = [
  'force-unsafe-io',
  'path-exclude=/usr/share/doc/*',
  'path-include=/usr/share/doc/*/copyright',
  'path-exclude=/usr/share/man/*',
  'path-exclude=/usr/share/info/*',
  'path-exclude=/usr/share/locale/*',
]

const BASE_DEFAULTS: ImageDefaults = {
  user: USER.name,
  workdir: USER.home,
  env: {
    PATH: `${USER.home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    LANG: 'C.UTF-8',
    // node-gyp finds the headers of Node here; otherwise it would download them.
    npm_package_config_node_gyp_nodedir: '/usr/local',
  },
}

interface BaseJob extends Job {
  packages: readonly string[]
  force: boolean
  /** The current base, if there is one. */
  current: { image: Image; path: string } | undefined
}

export async function buildBase(job: BaseJob): Promise<Image> {
  const { staging, onProgress } = job
  onProgress({ stage: 'resolve', message: 'Reading the package sources of this machine' })
  const definition = await defineBase(job.packages)
  const { suite, packages, settings, authorities, registry, inputs } = definition
  if (!job.force) {
    const found = (await sameInputs(job, inputs)) ?? (await job.find(inputs))
    if (found) return found
  }
  const root = join(staging.image, 'root')
  const node = await fetchNode(job)
  await bootstrap(job, { suite, packages, sources: settings.sources, dpkgOptions: DPKG_OPTIONS, root })
  onProgress({ stage: 'finish', message: 'Adding the user and cleaning up', fraction: 0.96 })
  await trust(root, authorities)
  await finish(root, settings)
  await installNode(root, treeWriter(root), node, registry)
  await dropFileCapabilities(root)
  await writeFile(join(staging.image, 'inputs'), inputs)
  return publish(staging, {
    digest: job.force ? digestOf([inputs, Date.now()]) : inputs,
    source: { kind: 'debian', suite },
    versions: await versionsOf(root),
    defaults: trusting(BASE_DEFAULTS, authorities),
    trees: (name) => [{ tree: 'root', at: '/', lowers: [{ kind: 'image', name, tree: 'root' }] }],
  })
}

interface BaseDefinition {
  suite: string
  packages: readonly string[]
  settings: AptSettings
  authorities: readonly Authority[]
  /** The npm registry. */
  registry: string | undefined
  /** The digest of all of the above. Two builds with the same digest may contain different package versions. */
  inputs: string
}

/** The inputs of a base that is built now. */
export async function defineBase(more: readonly string[] = []): Promise<BaseDefinition> {
  const all = await aptSources()
  const suite = suiteOf(all) ?? 'bookworm'
  const settings: AptSettings = { sources: archiveOf(all, suite), options: await aptOptions() }
  if (settings.sources.length === 0) {
    throw new IsletError(
      'not_supported',
      'This machine has no Debian or Ubuntu package sources to build the base from.',
      {
        hint: 'Add them below /etc/apt, or import a root filesystem: islet image import.',
      },
    )
  }
  const packages = [...new Set([...PACKAGES, ...more])]
  for (const name of packages) {
    if (!/^[a-z0-9][a-z0-9+.-]+$/.test(name))
      throw new IsletError('bad_request', `${JSON.stringify(name)} is not the name of a package.`)
  }
  const authorities = await localAuthorities()
  const registry = await npmRegistry()
  const given = [suite, process.arch, packages, settings, authorities, nodePackages(), registry]
  return { suite, packages, settings, authorities, registry, inputs: digestOf([GENERATION, ...given]) }
}

async function sameInputs({ current }: BaseJob, inputs: string): Promise<Image | undefined> {
  const made = current && (await readFile(join(current.path, 'inputs'), 'utf8').catch(() => undefined))
  return made === inputs ? current?.image : undefined
}

async function trust(root: string, authorities: readonly Authority[]): Promise<void> {
  if (authorities.length === 0) return
  const tree = treeWriter(root)
  for (const { path, content } of authorities) await tree.file(path, content, 0o644)
  await runOk(['chroot', root, 'update-ca-certificates'])
}

async function versionsOf(root: string): Promise<Record<string, string>> {
  const ask = async (...argv: string[]) => (await runOk(['chroot', root, ...argv])).stdout.trim()
  const format = `--showformat=\${Package} \${Version}\\n`
  const installed = (await ask('dpkg-query', '--show', format, ...Object.values(TOLD))).split('\n')
  const packages = new Map(installed.map((line) => line.split(' ') as [string, string]))
  const versions: Record<string, string> = {
    node: (await ask('/usr/local/bin/node', '--version')).replace(/^v/, ''),
    npm: JSON.parse(await readFile(join(root, 'usr/local/lib/node_modules/npm/package.json'), 'utf8'))
      .version,
  }
  // Without Debian's additions: 1:2.39.5-0+deb12u2 is Git 2.39.5.
  for (const [name, from] of Object.entries(TOLD))
    versions[name] = /^(?:\d+:)?([\d.]+)/.exec(packages.get(from) ?? '')?.[1] ?? ''
  return versions
}

/** Turns a bootstrapped root into one for sandboxes; nothing of this machine may stay in it. */
async function finish(root: string, settings: AptSettings): Promise<void> {
  const tree = treeWriter(root)
  for (const path of [
    'dev',
    'run',
    'tmp',
    'var/cache/apt',
    'var/lib/apt/lists',
    'var/log',
    'etc/apt/sources.list.d',
    'etc/apt/sources.list',
  ]) {
    await removeTree(join(root, path))
  }
  for (const path of LEFTOVERS) await rm(join(root, path), { force: true })
  const dirs = [
    'dev',
    'run',
    'proc',
    'sys',
    '.islet',
    'var/cache/apt/archives/partial',
    'var/lib/apt/lists/partial',
    'var/log/apt',
  ]
  for (const path of dirs) await tree.dir(path, 0o755)
  for (const path of ['tmp', 'var/tmp', 'run/lock']) await tree.dir(path, 0o1777)
  await writeAptSettings(tree, { ...settings, options: [...settings.options, 'Acquire::Languages "none";'] })
  for (const path of keyringsOf(settings.sources)) {
    if (!(await exists(join(root, path)))) await tree.file(path.slice(1), await readFile(path), 0o644)
  }
  await tree.file('etc/dpkg/dpkg.cfg.d/islet', DPKG_OPTIONS.map((line) => `${line}\n`).join(''), 0o644)
  for (const [name, content] of Object.entries(COMMON_ETC)) await tree.file(`etc/${name}`, content, 0o644)
  await rm(join(root, 'etc/resolv.conf'), { force: true })
  await tree.file('etc/resolv.conf', '', 0o644)
  await tree.file('etc/machine-id', '', 0o444)
  await account(root, tree)
}

async function account(root: string, tree: TreeWriter): Promise<void> {
  const read = (name: string) => readFile(join(root, 'etc', name), 'utf8').catch(() => '')
  await writeAccounts(tree, withUser(await readAccounts(read), '/bin/bash'))
  await tree.file('etc/sudoers.d/islet', SUDOERS_USER, 0o440)
  await tree.dir('home/user', 0o755, USER)
  await tree.dir('workspace', 0o777, USER)
  const skel = join(root, 'etc/skel')
  for (const name of await readdir(skel))
    await tree.file(`home/user/${name}`, await readFile(join(skel, name)), 0o644, USER)
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}
