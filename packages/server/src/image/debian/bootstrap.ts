// Fills an empty directory with a Debian: with mmdebstrap, or with debootstrap and apt if mmdebstrap is not installed.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { exists } from '../../lib/exists.ts'
import type { Job } from '../job.ts'
import { type Argv, type RunResult, runOk } from '../run.ts'
import { type AptSource, aptOptions, keyringsOf, mirrorOf } from './apt.ts'

export interface Plan {
  suite: string
  packages: readonly string[]
  sources: readonly AptSource[]
  dpkgOptions: readonly string[]
  /** Does not exist yet. */
  root: string
}

/** Files that are needed only during the bootstrap. */
export const LEFTOVERS = [
  'etc/apt/apt.conf.d/99mmdebstrap',
  'etc/dpkg/dpkg.cfg.d/99mmdebstrap',
  'usr/sbin/policy-rc.d',
]

export async function bootstrap(job: Job, plan: Plan): Promise<void> {
  const { signal, staging } = job
  const files = {
    sources: join(staging.path, 'sources'),
    apt: join(staging.path, 'apt.conf'),
    dpkg: join(staging.path, 'dpkg.cfg'),
  }
  await mkdir(files.sources)
  for (const { path, content } of plan.sources)
    await writeFile(join(files.sources, path.replaceAll('/', '-')), content)
  // A file, not arguments, because a proxy URL may contain a password. Its copy in the root is one of LEFTOVERS.
  const options = [
    ...(await aptOptions({ onHost: true })),
    'APT::Install-Recommends "false";',
    'Acquire::Languages "none";',
  ]
  await writeFile(files.apt, options.map((line) => `${line}\n`).join(''), { mode: 0o600 })
  await writeFile(files.dpkg, plan.dpkgOptions.map((line) => `${line}\n`).join(''))

  const argv = (await exists('/usr/bin/mmdebstrap')) ? mmdebstrap(plan, files) : debootstrap(plan, files)
  // Own mount and pid namespaces, so that its mounts and processes end with it.
  const inside = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', ...argv] as const
  const env = { DEBIAN_FRONTEND: 'noninteractive', TMPDIR: staging.path }
  await runOk(inside, { signal, tied: true, env, onLine: progressOf(job), explain })
}

interface Files {
  sources: string
  apt: string
  dpkg: string
}

function mmdebstrap({ suite, packages, sources, root }: Plan, files: Files): Argv {
  const how = ['--mode=root', '--variant=minbase', '--format=directory', '--verbose']
  const what = [`--aptopt=${files.apt}`, `--dpkgopt=${files.dpkg}`, `--include=${packages.join(',')}`]
  const from = sources.map(({ path }) => join(files.sources, path.replaceAll('/', '-')))
  return ['mmdebstrap', ...how, ...what, suite, root, ...from]
}

/** debootstrap takes one mirror and cannot order large sets of packages: it makes the essential part, apt inside installs the rest. */
const DEBOOTSTRAP = `
set -e
root=$1 suite=$2 mirror=$3 keyring=$4 sources=$5 apt=$6 dpkg=$7
shift 7
debootstrap --variant=minbase --include=ca-certificates \${keyring:+"--keyring=$keyring"} "$suite" "$root" "$mirror"
rm -f "$root/etc/apt/sources.list"
cp "$sources"/* "$root/etc/apt/sources.list.d/"
cp "$apt" "$root/etc/apt/apt.conf.d/99mmdebstrap"
cp "$dpkg" "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
printf '#!/bin/sh\\nexit 101\\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
unset TMPDIR
chroot "$root" apt-get update
chroot "$root" apt-get install --yes "$@"
`

function debootstrap({ suite, packages, sources, root }: Plan, files: Files): Argv {
  const values = [
    root,
    suite,
    mirrorOf(sources)!,
    keyringsOf(sources)[0] ?? '',
    files.sources,
    files.apt,
    files.dpkg,
  ]
  return ['sh', '-c', DEBOOTSTRAP, 'sh', ...values, ...packages]
}

/** The essential packages come first, then the rest; each package is unpacked and set up. */
function progressOf({ onProgress }: Job): (line: string) => void {
  const phases = [
    { from: 0.1, to: 0.1 },
    { from: 0.1, to: 0.2 },
    { from: 0.2, to: 0.95 },
  ]
  let phase = phases[0]!
  let total = 1
  let seen = 0
  return (line) => {
    const step = /^I: (.+?)(?:\.\.\.)?$/.exec(line)?.[1]
    const planned = /(\d+) newly installed/.exec(line)?.[1]
    const name = /^(?:I: )?(?:Unpacking|Setting up|Configuring) ([^\s:(]+)/.exec(line)?.[1]
    if (planned) {
      phase = phases[phases.indexOf(phase) + 1] ?? phase
      total = Math.max(1, 2 * Number(planned))
      seen = 0
    }
    if (name) seen++
    const fraction = phase.from + (phase.to - phase.from) * Math.min(1, seen / total)
    if (name) onProgress({ stage: 'build', message: `Installing ${name}`, fraction })
    else if (step) onProgress({ stage: 'build', message: step, fraction })
  }
}

function explain({ stderr }: RunResult): IsletError | undefined {
  const line =
    stderr.split('\n').find((each) => /^(E:|Err:|dpkg: error|W: GPG)/.test(each)) ??
    stderr.split('\n').at(-1) ??
    ''
  const isNetwork =
    /could not resolve|connection (failed|refused|timed out)|failed to fetch|temporary failure|unable to connect/i.test(
      stderr,
    )
  return new IsletError('internal', `The Debian base could not be built: ${line.slice(0, 300)}`, {
    hint: isNetwork
      ? 'The package mirror of this machine did not answer: apt-get update must work first.'
      : 'apt-get update must work on this machine; the details hold the end of the output.',
    details: { stderr: stderr.slice(-4000) },
  })
}
