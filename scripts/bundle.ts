// Bundles the command, the server, the SDK and the dialects into a few files, which start in half the time of the sources.
//
//   node scripts/bundle.ts DIRECTORY   writes bin/, dist/ and web/ there; scripts/pack.ts adds the rest of the package
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import { bundleWeb } from './web.ts'

export interface Manifest {
  version: string
  dependencies: Record<string, string>
  /** Packages that the user may install beside ours; loaded when they are used. */
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional: boolean }>
  [field: string]: unknown
}

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The oldest Node that runs the SDK and starts the command. */
export const OLDEST_NODE = '20.3'

export const manifests = {
  contract: readManifest('contract'),
  server: readManifest('server'),
  sdk: readManifest('sdk'),
  dialects: readManifest('dialects'),
  cli: readManifest('cli'),
}

/** The entry points of `@islet/dialects`, each also one of `islet`: what its manifest exports and somebody has written. */
export const DIALECTS = Object.entries(manifests.dialects.exports as Record<string, string>)
  .filter(([, file]) => existsSync(join(ROOT, 'packages/dialects', file)))
  .map(([name]) => name.slice('./'.length))

if (import.meta.main) {
  const to = resolve(process.argv[2]!)
  rmSync(to, { recursive: true, force: true })
  await bundleIslet(to)
  cpSync(join(ROOT, 'packages/cli/package.json'), join(to, 'package.json'))
}

/** Returns the third-party packages that the bundle needs. */
export async function bundleIslet(to: string): Promise<Record<string, string>> {
  const dependencies = thirdParty(Object.values(manifests))
  await bundle(dependencies, {
    entryPoints: ['main', 'index', ...DIALECTS.map((name) => `dialects/${name}`)].map((name) =>
      join(ROOT, `packages/cli/src/${name}.ts`),
    ),
    outdir: join(to, 'dist'),
    format: 'esm',
    splitting: true,
  })
  // Read as a file beside the code.
  cpSync(join(ROOT, 'packages/server/src/data/agents/agent-runner.mjs'), join(to, 'dist/agent-runner.mjs'))
  cpSync(join(ROOT, 'packages/cli/bin'), join(to, 'bin'), { recursive: true })
  await bundleWeb(join(to, 'web'))
  return dependencies
}

/** Includes our own packages; third-party packages stay dependencies. */
export async function bundle(dependencies: Record<string, string>, options: BuildOptions): Promise<void> {
  const { warnings } = await build({
    bundle: true,
    platform: 'node',
    target: `node${OLDEST_NODE}`,
    external: Object.keys({ ...dependencies, ...manifests.dialects.peerDependencies }).flatMap((name) => [
      name,
      `${name}/*`,
    ]),
    tsconfigRaw: {},
    ...options,
  })
  if (warnings.length > 0) throw new Error('esbuild warns; see above')
}

export function thirdParty(of: Manifest[]): Record<string, string> {
  const all = of.flatMap(({ dependencies }) => Object.entries(dependencies))
  return Object.fromEntries(all.filter(([name]) => !name.startsWith('@islet/')).sort())
}

function readManifest(name: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'packages', name, 'package.json'), 'utf8'))
}
