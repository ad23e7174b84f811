// Runs the installers in a builder. Names of packages are arguments; no shell reads them.
import { IsletError, type PackageSet } from '@islet/contract'
import type { Recipe } from '../../image/recipes.ts'
import { type Builder, type Ran, ROOT } from './builder.ts'
import { packagesFailed, type Tool, toolMissing } from './failures.ts'

/** Home, caches and temporary files of the installers. Removed at the end. */
const WORK = '/tmp/islet-packages'
const NO_SERVICES = '/usr/sbin/policy-rc.d'
const APT = [
  '--quiet',
  ...['Acquire::Retries=2', 'APT::Update::Error-Mode=any', 'Dpkg::Use-Pty=0'],
  // Otherwise a name that no package has may be taken for an expression.
  'APT::Cmd::Pattern-Only=true',
].flatMap((word) => (word.includes('=') ? ['--option', word] : [word]))
const NPM = ['--global', '--no-audit', '--no-fund', '--fetch-retries=2', '--loglevel=http']
/** Programs of a recipe are complete as they are, and replace those of the base. */
const NPM_OF_RECIPE = ['--ignore-scripts', '--force']
const PIP = ['--no-cache-dir', '--no-input', '--disable-pip-version-check', '--progress-bar', 'off']
const ENV = {
  HOME: WORK,
  TMPDIR: WORK,
  DEBIAN_FRONTEND: 'noninteractive',
  npm_config_update_notifier: 'false',
  PIP_ROOT_USER_ACTION: 'ignore',
}

interface Install {
  builder: Builder
  recipe: Recipe | undefined
  tell: (message: string) => void
}

/** Returns the versions that the recipe tells. */
export async function install(set: PackageSet, install: Install): Promise<Record<string, string>> {
  const { guest } = install.builder
  const { dependencies, packages, pip } = set
  await guest.mkdir(WORK, { parents: true })
  await guest.chmod(WORK, 0o1777)
  if (dependencies.length > 0) await byApt(dependencies, install)
  if (packages.length > 0) await byNpm(packages, install)
  if (pip.length > 0) await run(install, 'pip', ['pip', 'install', ...PIP, '--', ...pip])
  const versions = await linked(install)
  await guest.remove(WORK, { recursive: true })
  return versions
}

async function byApt(names: readonly string[], install: Install): Promise<void> {
  const { guest } = install.builder
  // A service that a package starts would be cut off in the middle of its work.
  const isOurs = await guest.stat(NO_SERVICES).then(
    () => false,
    () => true,
  )
  if (isOurs)
    await guest.write(NO_SERVICES, chunk('#!/bin/sh\nexit 101\n'), {
      mode: 0o755,
      parents: true,
      owner: ROOT,
    })
  await run(install, 'apt', ['apt-get', ...APT, 'update'])
  const how = ['--yes', '--no-install-recommends', '--allow-downgrades']
  await run(install, 'apt', ['apt-get', ...APT, 'install', ...how, '--', ...names])
  await run(install, 'apt', ['apt-get', 'clean'])
  await run(install, 'apt', ['find', '/var/lib/apt/lists', '-type', 'f', '-delete'])
  if (isOurs) await guest.remove(NO_SERVICES)
}

async function byNpm(names: readonly string[], install: Install): Promise<void> {
  const more = install.recipe ? NPM_OF_RECIPE : []
  const user = await npmUser(install)
  await run(install, 'npm', ['npm', 'install', ...NPM, ...more, '--', ...names], user)
}

/** The owner of the global directories, who can then change what is installed there. */
async function npmUser(install: Install): Promise<string> {
  const ask = async (what: string) => {
    const quiet = { ...install, tell: () => {} }
    const { lines } = await run(quiet, 'npm', ['npm', what, '--global', '--loglevel=silent'])
    return lines.at(-1) ?? '/'
  }
  const paths = [await ask('root'), `${await ask('prefix')}/bin`]
  const owners = paths.map(async (path) => {
    const { uid, gid } = await install.builder.guest.stat(path)
    return `${uid}:${gid}`
  })
  const [modules, bin] = await Promise.all(owners).catch(() => [])
  return modules !== undefined && modules === bin ? modules : ROOT
}

/** Links the commands of a recipe, and asks for the version: a program that does not run fails the build. */
async function linked(install: Install): Promise<Record<string, string>> {
  const { commands = {}, told } = install.recipe ?? {}
  for (const [name, file] of Object.entries(commands))
    await run(install, 'npm', ['ln', '-sfn', `../lib/node_modules/${file}`, `/usr/local/bin/${name}`])
  if (told === undefined) return {}
  const { lines } = await run(install, 'npm', [told, '--version'])
  const version = /\d+(\.\d+)+/.exec(lines.join('\n'))?.[0]
  return version === undefined ? {} : { [told]: version }
}

async function run(
  { builder, tell }: Install,
  tool: Tool,
  argv: readonly string[],
  user: string = ROOT,
): Promise<Ran> {
  const onLine = (line: string) => tell(`${tool}: ${line}`)
  try {
    // npm refuses a cache with files of another user.
    const env = { ...ENV, npm_config_cache: `${WORK}/npm-${user}` }
    const ran = await builder.run(argv, { user, env, onLine })
    if (ran.exitCode === 0) return ran
    throw packagesFailed(tool, ran)
  } catch (error) {
    throw error instanceof IsletError && error.code === 'command_not_found'
      ? toolMissing(tool, argv[0]!)
      : error
  }
}

async function* chunk(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text)
}
