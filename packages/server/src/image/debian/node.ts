// Current Node for the base, with npm and corepack: Debian's Node is years old, and its npm depends on hundreds of packages. They
// are downloaded from this machine's npm registry by its own npm, which verifies them.
import { chmod, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { IsletError } from '@islet/contract'
import { USER } from '../accounts.ts'
import type { Job } from '../job.ts'
import { type RunResult, run, runOk } from '../run.ts'
import type { TreeWriter } from '../tree.ts'
import { isLoopbackUrl } from './apt.ts'

const MAJOR = 24
/** The OpenSSL headers of this processor; those of the other processors are most of all headers and are left out. */
const OPENSSL: Partial<Record<NodeJS.Architecture, string>> = { x64: 'linux-x86_64', arm64: 'linux-aarch64' }

/** The environment for npm, with the npm settings of the server's user. */
const ENV = {
  PATH: [process.env.PATH, dirname(process.execPath)].join(':'),
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => /^npm_config_/i.test(entry[0]) && entry[1] !== undefined,
    ),
  ),
}

/** The names of the packages, in the order of `fetchNode`. */
export function nodePackages(): [node: string, npm: string, corepack: string] {
  if (!OPENSSL[process.arch])
    throw new IsletError('not_supported', `There is no Node for the base on a processor ${process.arch}.`)
  return [`node-linux-${process.arch}@${MAJOR}`, 'npm@11', 'corepack@0']
}

/** The registry of this machine's npm, for use in the base; none if its URL has a password or is on the loopback. */
export async function npmRegistry(): Promise<string | undefined> {
  const { exitCode, stdout } = await run(['npm', 'config', 'get', 'registry'], { env: ENV }).catch(
    (error) => {
      throw new IsletError(
        'not_supported',
        'The base needs npm to get Node, and npm is not installed on this machine.',
        {
          hint: 'Install Node with npm, or use another image: islet image pull.',
          cause: error,
        },
      )
    },
  )
  const registry = stdout.trim()
  return exitCode === 0 && /^https?:\/\/[^\s@"]+$/.test(registry) && !isLoopbackUrl(registry)
    ? registry
    : undefined
}

/** Downloads the packages; returns the paths of their tars. */
export async function fetchNode({ staging, signal, onProgress }: Job): Promise<string[]> {
  const packages = nodePackages()
  onProgress({ stage: 'download', message: `Fetching ${packages.join(', ')}`, fraction: 0.02 })
  const into = join(staging.path, 'npm')
  await mkdir(into)
  const pack = [
    'npm',
    'pack',
    '--loglevel=error',
    '--fetch-retries=1',
    '--pack-destination',
    into,
    ...packages,
  ] as const
  const { stdout } = await runOk(pack, { signal, tied: true, cwd: into, env: ENV, explain })
  // npm prints the file name of each package, in this order.
  return stdout
    .trim()
    .split('\n')
    .map((name) => join(into, name))
}

/** The account `user` owns the global directories, so that `npm i -g` needs no sudo. */
export async function installNode(
  root: string,
  tree: TreeWriter,
  [node, npm, corepack]: string[],
  registry: string | undefined,
): Promise<void> {
  const local = join(root, 'usr/local')
  const modules = join(local, 'lib/node_modules')
  for (const path of ['bin', 'etc', 'include', 'lib', 'lib/node_modules', 'share'])
    await tree.dir(`usr/local/${path}`, 0o755)
  for (const name of ['npm', 'corepack']) await mkdir(join(modules, name))
  const archs = 'package/include/node/openssl/archs'
  await unpack(node!, local, ['--exclude', archs, 'package/bin', 'package/include'])
  await unpack(node!, local, [`${archs}/${OPENSSL[process.arch]}`])
  await unpack(npm!, join(modules, 'npm'), ['--exclude=package/docs', '--exclude=package/man'])
  await unpack(corepack!, join(modules, 'corepack'))
  for (const [name, program] of [
    ['npm', 'npm/bin/npm-cli.js'],
    ['npx', 'npm/bin/npx-cli.js'],
    ['corepack', 'corepack/dist/corepack.js'],
  ] as const) {
    await chmod(join(modules, program), 0o755)
    await tree.link(`usr/local/bin/${name}`, `../lib/node_modules/${program}`)
  }
  if (registry) await tree.file('usr/local/etc/npmrc', `registry=${registry}\n`, 0o644)
  await runOk([
    'chown',
    '-R',
    '-h',
    `${USER.uid}:${USER.gid}`,
    ...['bin', 'etc', 'lib/node_modules', 'share'].map((path) => join(local, path)),
  ])
}

async function unpack(file: string, into: string, members: string[] = []): Promise<void> {
  const how = ['--strip-components=1', '--no-same-owner', '--no-same-permissions', '--mode=u+w,a+rX']
  await runOk(['tar', '-xzf', file, `--directory=${into}`, ...how, ...members])
}

function explain({ stderr }: RunResult): IsletError {
  const line = stderr.split('\n').find((each) => /npm error (?!code |errno )\S/.test(each)) ?? ''
  return new IsletError('internal', `Node for the base could not be downloaded: ${line.slice(0, 300)}`, {
    hint: `npm view ${nodePackages()[0]} version must work on this machine, as the user of the server.`,
    details: { stderr: stderr.slice(-4000) },
  })
}
