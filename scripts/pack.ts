// Builds the npm packages `islet`, `@islet/sdk` and `@islet/dialects`, and writes their tarballs to dist/, or to the directory given as argument.
//
//   islet-<version>.tgz            bin/ dist/ (the command, the server, the SDK and the dialects, bundled) web/ scripts/setup native/linux-{x64,arm64}/
//   islet-sdk-<version>.tgz        dist/esm/ dist/cjs/
//   islet-dialects-<version>.tgz   dist/esm/ dist/cjs/, with `@islet/sdk` as a dependency
//
// The bundled code is one directory below the root of its package, as src/ is. Code that looks for a file of ours outside its own package
// (native.ts, setup.ts) must find it in both places.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import {
  bundle,
  bundleIslet,
  DIALECTS,
  type Manifest,
  manifests,
  OLDEST_NODE,
  ROOT,
  thirdParty,
} from './bundle.ts'

const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'))
const STAGE = mkdtempSync(join(tmpdir(), 'islet-pack-'))
const TYPES = join(STAGE, 'types')
/** The command runs on OLDEST_NODE, and hands over to this one because the server needs it. */
const NEWER_NODE = '^24.0.0'
/** Our packages by the names under which our code imports them. */
const BARE = { '@islet/contract/client': 'contract/src/client', '@islet/sdk': 'sdk/src/index' }
const ARCHITECTURES = {
  x64: { compiler: 'x86_64-linux-gnu-gcc', emulator: 'qemu-x86_64' },
  arm64: { compiler: 'aarch64-linux-gnu-gcc', emulator: 'qemu-aarch64' },
}
type Architecture = keyof typeof ARCHITECTURES

mkdirSync(DIST, { recursive: true })
for (const old of globSync('islet-*.tgz', { cwd: DIST })) rmSync(join(DIST, old))
try {
  execFileSync(join(ROOT, 'scripts/setup'), ['--pack'], { stdio: ['ignore', 2, 2] })
  emitTypes()
  const stages = { islet: stageIslet, sdk: stageSdk, dialects: stageDialects }
  for (const [name, stage] of Object.entries(stages)) {
    await stage(join(STAGE, name))
    const args = ['pack', '--silent', '--pack-destination', DIST]
    execFileSync('npm', args, { cwd: join(STAGE, name), stdio: ['ignore', 'inherit', 'inherit'] })
  }
} finally {
  rmSync(STAGE, { recursive: true })
}

async function stageIslet(to: string): Promise<void> {
  const dependencies = await bundleIslet(to)
  copyTypes(join(to, 'dist/types'), ['contract', 'sdk', 'dialects'])
  cpSync(join(ROOT, 'scripts/setup'), join(to, 'scripts/setup'))
  const newerNode: Record<string, string> = {}
  for (const architecture of ['x64', 'arm64'] as const) {
    buildNative(architecture, join(to, 'native', `linux-${architecture}`))
    newerNode[`node-linux-${architecture}`] = NEWER_NODE
  }
  const exports: Record<string, object> = {
    '.': { types: './dist/types/sdk/src/index.d.ts', default: './dist/index.js' },
  }
  for (const name of DIALECTS)
    exports[`./${name}`] = {
      types: `./dist/types/dialects/src/${name}/index.d.ts`,
      default: `./dist/dialects/${name}.js`,
    }
  finish(to, 'cli', {
    files: ['bin', 'dist', 'native', 'scripts', 'web'],
    exports,
    dependencies,
    ...peers(),
    optionalDependencies: newerNode,
  })
}

async function stageSdk(to: string): Promise<void> {
  await stageLibrary(to, 'sdk', {
    dependencies: thirdParty([manifests.sdk]),
    entryPoints: { '.': 'src/index.ts' },
    // Browsers use their own WebSocket.
    fields: { browser: { ws: false } },
  })
}

async function stageDialects(to: string): Promise<void> {
  const { version } = manifests.sdk
  await stageLibrary(to, 'dialects', {
    dependencies: { '@islet/sdk': version, ...thirdParty([manifests.dialects]) },
    entryPoints: Object.fromEntries(DIALECTS.map((name) => [`./${name}`, `src/${name}/index.ts`])),
    fields: peers(),
  })
}

/** A package without programs: an ES module and CommonJS, with types for both. */
async function stageLibrary(
  to: string,
  name: 'sdk' | 'dialects',
  {
    dependencies,
    entryPoints,
    fields,
  }: { dependencies: Record<string, string>; entryPoints: Record<string, string>; fields: object },
): Promise<void> {
  for (const format of ['esm', 'cjs'] as const) {
    const outdir = join(to, 'dist', format)
    await bundle(dependencies, {
      entryPoints: Object.values(entryPoints).map((file) => join(ROOT, 'packages', name, file)),
      outbase: join(ROOT, 'packages', name, 'src'),
      outdir,
      format,
      splitting: format === 'esm',
    })
    copyTypes(join(outdir, 'types'), name === 'sdk' ? ['contract', 'sdk'] : ['dialects'])
  }
  // All code and types below this directory are CommonJS.
  writeFileSync(join(to, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n')
  const entry = (format: 'esm' | 'cjs', file: string) => ({
    types: `./dist/${format}/types/${name}/${file.replace(/\.ts$/, '.d.ts')}`,
    default: `./dist/${format}/${file.replace(/^src\/(.*)\.ts$/, '$1.js')}`,
  })
  const exports = Object.entries(entryPoints).map(([path, file]) => [
    path,
    { import: entry('esm', file), require: entry('cjs', file) },
  ])
  finish(to, name, {
    files: ['dist'],
    exports: Object.fromEntries(exports),
    sideEffects: false,
    dependencies,
    ...fields,
  })
}

function peers(): Pick<Manifest, 'peerDependencies' | 'peerDependenciesMeta'> {
  const { peerDependencies, peerDependenciesMeta } = manifests.dialects
  return {
    ...(peerDependencies && { peerDependencies }),
    ...(peerDependenciesMeta && { peerDependenciesMeta }),
  }
}

/** Builds static programs and runs each once, in an emulator if they are for another architecture. */
function buildNative(architecture: Architecture, to: string): void {
  const isOwn = process.arch === architecture
  const { compiler, emulator } = ARCHITECTURES[architecture]
  const native = join(ROOT, 'native')
  const built = `build/linux-${architecture}`
  execFileSync('make', ['-s', '-C', native, `CC=${isOwn ? 'gcc' : compiler}`, `BUILD=${built}`], {
    stdio: ['ignore', 2, 2],
  })
  for (const program of ['guest', 'warden']) {
    const path = join(native, built, program)
    const [command, ...args] = isOwn ? [path, '--version'] : [emulator, path, '--version']
    const said = execFileSync(command!, args, { encoding: 'utf8' })
    if (!said.startsWith(`${program} `)) throw new Error(`${path} --version says ${said}`)
    cpSync(path, join(to, program))
  }
}

/** The declarations of the SDK, of the contract types that it uses, and of the dialects. */
function emitTypes(): void {
  const config = join(STAGE, 'tsconfig.json')
  const entries = ['sdk/src/index.ts', ...DIALECTS.map((name) => `dialects/src/${name}/index.ts`)]
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions: {
        noEmit: false,
        declaration: true,
        emitDeclarationOnly: true,
        rootDir: join(ROOT, 'packages'),
        outDir: TYPES,
        // tsc writes no declarations for libraries, that is, for files below node_modules.
        paths: Object.fromEntries(
          Object.entries(BARE).map(([name, file]) => [name, [join(ROOT, 'packages', `${file}.ts`)]]),
        ),
        typeRoots: [join(ROOT, 'node_modules/@types')],
      },
      include: [],
      files: entries.map((file) => join(ROOT, 'packages', file)),
    }),
  )
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', config], { stdio: ['ignore', 2, 2] })
}

/** The declarations of these packages, which may import each other by path; any other they import by name. */
function copyTypes(to: string, packages: readonly string[]): void {
  const patterns = packages.map((name) => `${name}/**/*.d.ts`)
  for (const name of globSync(patterns, { cwd: TYPES })) {
    let text = readFileSync(join(TYPES, name), 'utf8').replaceAll(
      /(from |import\()['"](\.[^'"]+)\.ts['"]/g,
      "$1'$2.js'",
    )
    for (const [bare, file] of Object.entries(BARE)) {
      if (!packages.includes(file.split('/')[0]!)) continue
      const import_ = new RegExp(`(from |import\\()['"]${bare}['"]`, 'g')
      text = text.replaceAll(import_, `$1'./${relative(dirname(name), file)}.js'`)
    }
    mkdirSync(dirname(join(to, name)), { recursive: true })
    // `await using` may be newer than what the user compiles for.
    writeFileSync(join(to, name), `/// <reference lib="esnext.disposable" />\n${text}`)
  }
}

function finish(to: string, name: 'cli' | 'sdk' | 'dialects', fields: object): void {
  // The scripts are for the clone: there, npm pack points to this program.
  const { scripts: _scripts, ...given } = manifests[name]
  const manifest = {
    ...given,
    keywords: ['sandbox', 'agent', 'isolation', 'code-execution'],
    engines: { node: `>=${OLDEST_NODE}` },
    ...fields,
  }
  writeFileSync(join(to, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  cpSync(join(ROOT, 'LICENSE'), join(to, 'LICENSE'))
  cpSync(join(ROOT, 'packages', name, 'README.md'), join(to, 'README.md'))
}
