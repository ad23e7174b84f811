// Imports go down only: lib ← contract ← parts ← control ← data ← edges ← app. This finds imports that go up or sideways.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const server = 'packages/server/src'

/** Folders and top-level files of the server, lowest first. A file may import from lower layers and from its own folder. */
const LAYERS: readonly (readonly string[])[] = [
  ['lib'],
  ['wire', 'version.ts', 'log.ts', 'key.ts', 'tokens.ts', 'native.ts', 'config', 'config.ts'],
  ['listen'],
  ['warden'],
  ['db', 'engine', 'storage', 'image', 'guest', 'instance.ts'],
  ['control'],
  ['data'],
  ['api', 'preview'],
  ['start'],
  ['app.ts'],
  ['main.ts'],
]
/** A slot and what runs in it know each other: claims and teardown live with the engines. */
const SAME_FOLDER: Record<string, string> = { 'instance.ts': 'engine' }

/** Clients have no zod: they use the plain half of the contract. */
const PACKAGES: Record<string, readonly string[]> = {
  contract: [],
  server: ['@islet/contract'],
  sdk: ['@islet/contract/client'],
  dialects: ['@islet/sdk'],
  cli: [
    ...['agentium', 'agentuity', 'computesdk', 'hono', 'opencomputer'].map(
      (name) => `@islet/dialects/${name}`,
    ),
    '@islet/contract/client',
    '@islet/server',
    '@islet/server/native',
    '@islet/server/probe',
    '@islet/sdk',
  ],
}

const problems: string[] = []
for (const file of globSync('packages/*/src/**/*.ts', { cwd: root })) {
  if (isForTests(file)) continue
  const text = readFileSync(join(root, file), 'utf8')
  for (const match of text.matchAll(/^(import|export)( type)?\b[^'";]*?from '([^']+)'/gm)) {
    check(file, match[3]!, match[2] !== undefined)
  }
}
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0

function check(file: string, target: string, typeOnly: boolean): void {
  const owner = file.split('/')[1]!
  if (target.startsWith('@islet/') || target === 'islet' || target.startsWith('islet/')) {
    if (!PACKAGES[owner]!.includes(target))
      problems.push(`${file}: package ${owner} may not import ${target}`)
    return
  }
  if (!target.startsWith('.')) return
  const path = join(dirname(file), target)
  if (path.split('/')[1] !== owner) {
    problems.push(`${file}: imports ${target} across packages; import the package instead`)
    return
  }
  if (owner !== 'server') return
  const from = layerOf(file)
  const to = layerOf(path)
  const sameFolder = folderOf(file) === folderOf(path)
  // Neighbours may name each other's types: a record names an engine's root, a root names an image's trees.
  const sideways = from === to && !sameFolder && !typeOnly && from > 1
  if (to > from || sideways) problems.push(`${file}: may not import ${path}, which is above or beside it`)
}

/** Suites and harnesses may import everything they test. */
function isForTests(file: string): boolean {
  return /\.(test|suite|scratch)\.ts$|\/(testing|suite)(\/|\.ts$)|\/(harness|traces)\.ts$/.test(file)
}

function folderOf(file: string): string {
  const folder = relative(server, file).split('/')[0]!
  return SAME_FOLDER[folder] ?? folder
}

function layerOf(file: string): number {
  const layer = LAYERS.findIndex((names) => names.includes(folderOf(file)))
  if (layer < 0) problems.push(`${file}: no layer in scripts/check-layers.ts names it`)
  return layer
}
