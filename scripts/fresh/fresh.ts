// Runs the README's command lines on a new machine: a minimal Debian (what mmdebstrap calls minbase) with Node 20,
// with mounts, processes, network and cgroups of its own. The repository in it is a clean clone of HEAD.
//
//   npm run fresh                              all legs, each in a root of its own
//   npm run fresh -- --only run                one of run, test, package
//   npm run fresh -- --suite trixie            another suite of the archive that this machine uses
//   npm run fresh -- --suite noble --source 'deb [signed-by=KEYRING] URL noble main universe'    another archive
//   npm run fresh -- --keep                    leaves the roots in /var/tmp, until the next run
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { makeRoot } from './root.ts'
import { clean, enter, sweep } from './walls.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const LEGS = ['run', 'test', 'package'] as const
type Leg = (typeof LEGS)[number]

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    suite: { type: 'string' },
    source: { type: 'string', multiple: true },
    keep: { type: 'boolean', default: false },
  },
})
if (values.only !== undefined && !LEGS.includes(values.only as Leg)) {
  stop(`--only takes one of ${LEGS.join(', ')}, not ${values.only}.`)
}
if (process.geteuid?.() !== 0) stop('Only root can make a root file system and enter it.')

await sweep()
const failed: Leg[] = []
for (const leg of LEGS) {
  if (values.only !== undefined && values.only !== leg) continue
  const code = await runLeg(leg)
  say(code === 0 ? `${leg}: passed` : `${leg}: failed with code ${code}`)
  if (code !== 0) failed.push(leg)
}
if (failed.length > 0) stop(`Failed: ${failed.join(', ')}`)
say('All passed.')

async function runLeg(leg: Leg): Promise<number> {
  const name = `islet-fresh-${process.pid}`
  const root = `/var/tmp/${name}`
  const onSignal = () => void clean(name, values).then(() => process.exit(1))
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  try {
    say(`${leg}: making ${root}`)
    await makeRoot(root, values)
    const script = leg === 'package' ? packageScript(root) : cloneScript(root, leg)
    return await enter(name, root, script)
  } finally {
    await clean(name, values)
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
  }
}

function cloneScript(root: string, leg: 'run' | 'test'): string {
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', REPOSITORY, join(root, 'root/islet')])
  const start = 'cd /root/islet\n'
  if (leg === 'test') return start + readmeLine(/^npm ci && npm test$/m)
  return (
    start +
    prints42(readmeLine(/^npm ci && npx islet run .*$/m)) +
    answers(readmeLine(/^npm ci && npm start$/m))
  )
}

function packageScript(root: string): string {
  execFileSync('npm', ['run', '--silent', 'pack', '--', join(root, 'root/dist')], {
    cwd: REPOSITORY,
    stdio: ['ignore', 2, 2],
  })
  const noCompiler = 'for name in cc gcc clang make; do if command -v $name; then exit 1; fi; done\n'
  return `cd /root\n${noCompiler}${prints42(readmeLine(/^npm install --global .* && islet run .*$/m))}${noCompiler}`
}

/** The line as the README has it, so that the test runs what the README says. */
function readmeLine(pattern: RegExp): string {
  const [line] = pattern.exec(readFileSync(join(REPOSITORY, 'README.md'), 'utf8')) ?? []
  return line ?? stop(`README.md has no line ${pattern}.`)
}

function prints42(command: string): string {
  return `{ ${command}; } | tee /tmp/printed\n[ "$(tail -n 1 /tmp/printed)" = 42 ]\n`
}

function answers(command: string): string {
  const probe = `
    for (let tries = 600; tries > 0; tries--) {
      const answer = await fetch('http://127.0.0.1:7400/health').catch(() => undefined)
      if (answer?.ok) process.exit(0)
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    throw new Error('No answer on the port of the README')`
  return `{ ${command}; } & server=$!\nnode --input-type=module --eval "${probe}"\nkill $server\n`
}

function say(line: string): void {
  console.error(`fresh: ${line}`)
}

function stop(line: string): never {
  say(line)
  process.exit(1)
}
