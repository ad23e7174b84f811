// npm run release -- VERSION: prepares a release and publishes nothing. It sets the version of all packages, moves the section Unreleased of
// CHANGELOG.md under the version, packs to dist/, and lets npm rehearse the publishing. It ends with the commands that publish for real.
// If a step fails, the files are as they were.
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Manifest {
  version?: string
  dependencies?: Record<string, string>
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CHANGELOG = 'CHANGELOG.md'
const UNRELEASED = '## Unreleased\n'
const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/

const version = wantedVersion()
const changelog = read(CHANGELOG)
mustHaveNotes()
mustBeNew()
mustBeClean()

const changes = new Map<string, string>([[CHANGELOG, withSection()], ...withVersions()])
const before = new Map([...changes.keys()].map((path) => [path, read(path)]))
const tarballs = ['islet-sdk', 'islet-dialects', 'islet'].map((name) => `dist/${name}-${version}.tgz`)
try {
  for (const [path, text] of changes) write(path, text)
  run(process.execPath, 'scripts/pack.ts')
  for (const tarball of tarballs) run('npm', 'publish', '--dry-run', '--access', 'public', `./${tarball}`)
} catch (error) {
  for (const [path, text] of before) write(path, text)
  stop(`The release was not prepared, and the files are as they were: ${(error as Error).message}`)
}
console.log(`
${version} is prepared. To publish it:

  git commit --all --message 'release: ${version}'
  git tag v${version}
${tarballs.map((tarball) => `  npm publish --access public ./${tarball}`).join('\n')}
  git push --follow-tags origin HEAD v${version}

To undo it: git checkout -- ${[...changes.keys()].join(' ')}`)

function wantedVersion(): string {
  const [given, ...others] = process.argv.slice(2)
  if (given === undefined || others.length > 0) stop('Give one version: npm run release -- 0.2.0')
  if (!VERSION.test(given)) stop(`"${given}" is not a version. Give three numbers: npm run release -- 0.2.0`)
  return given
}

function mustHaveNotes(): void {
  const from = changelog.indexOf(UNRELEASED)
  if (from < 0) stop(`${CHANGELOG} has no section "${UNRELEASED.trim()}".`)
  const [text] = changelog.slice(from + UNRELEASED.length).split(/^## /m)
  if (text!.trim() === '')
    stop(`The section Unreleased of ${CHANGELOG} is empty: there is nothing to release.`)
}

function mustBeNew(): void {
  const [last] = [...changelog.matchAll(/^## (\d+\.\d+\.\d+) /gm)].map((match) => match[1]!)
  if (last !== undefined && compare(version, last) <= 0)
    stop(`${version} is not newer than ${last}, the last release in ${CHANGELOG}.`)
  if (say('git', 'tag', '--list', `v${version}`) !== '') stop(`The tag v${version} exists already.`)
}

function mustBeClean(): void {
  const changed = say('git', 'status', '--porcelain')
  if (changed !== '') stop(`Commit or remove these changes first:\n${changed}`)
}

function compare(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true })
}

function withSection(): string {
  const today = new Date().toISOString().slice(0, 10)
  return changelog.replace(UNRELEASED, `${UNRELEASED}\n## ${version} (${today})\n`)
}

/** The manifests and the lock file, in which our packages depend on each other by exact version. */
function withVersions(): [string, string][] {
  const manifests = ['package.json', ...globSync('packages/*/package.json', { cwd: ROOT })].map(
    (path): [string, string] => [path, edited(path, (manifest: Manifest) => setVersion(manifest))],
  )
  const lock = edited('package-lock.json', (file: Manifest & { packages: Record<string, Manifest> }) => {
    setVersion(file)
    for (const [path, entry] of Object.entries(file.packages))
      if (path === '' || path.startsWith('packages/')) setVersion(entry)
  })
  return [...manifests, ['package-lock.json', lock]]
}

function setVersion(manifest: Manifest): void {
  manifest.version = version
  for (const name of Object.keys(manifest.dependencies ?? {}))
    if (name.startsWith('@islet/')) manifest.dependencies![name] = version
}

function edited<T>(path: string, edit: (value: T) => void): string {
  const value = JSON.parse(read(path)) as T
  edit(value)
  return `${JSON.stringify(value, null, 2)}\n`
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2] })
}

function say(command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8' }).trim()
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function write(path: string, text: string): void {
  writeFileSync(join(ROOT, path), text)
}

function stop(message: string): never {
  console.error(message)
  process.exit(1)
}
