// Builds the two npm packages, `islet` and `@islet/sdk`, and writes their tarballs to dist/, or to the directory given as argument.
//
//   islet-<version>.tgz       bin/ dist/ (the command, the server and the SDK, bundled) scripts/setup native/linux-{x64,arm64}/
//   islet-sdk-<version>.tgz   dist/esm/ dist/cjs/
//
// The bundled code is one directory below the root of its package, as src/ is. Code that looks for a file of ours outside its own package
// (native.ts, setup.ts) must find it in both places.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { bundle, bundleIslet, manifests, OLDEST_NODE, ROOT, thirdParty } from './bundle.ts'

const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'))
const STAGE = mkdtempSync(join(tmpdir(), 'islet-pack-'))
const TYPES = join(STAGE, 'types')
/** The command runs on OLDEST_NODE, and hands over to this one because the server needs it. */
const NEWER_NODE = '^24.0.0'
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
  await stageIslet(join(STAGE, 'islet'))
  await stageSdk(join(STAGE, 'sdk'))
  for (const name of ['islet', 'sdk']) {
    const args = ['pack', '--silent', '--pack-destination', DIST]
    execFileSync('npm', args, { cwd: join(STAGE, name), stdio: ['ignore', 'inherit', 'inherit'] })
  }
} finally {
  rmSync(STAGE, { recursive: true })
}

async function stageIslet(to: string): Promise<void> {
  const dependencies = await bundleIslet(to)
  cpSync(TYPES, join(to, 'dist/types'), { recursive: true })
  cpSync(join(ROOT, 'scripts/setup'), join(to, 'scripts/setup'))
  const newerNode: Record<string, string> = {}
  for (const architecture of ['x64', 'arm64'] as const) {
    buildNative(architecture, join(to, 'native', `linux-${architecture}`))
    newerNode[`node-linux-${architecture}`] = NEWER_NODE
  }
  finish(to, 'cli', {
    files: ['bin', 'dist', 'native', 'scripts'],
    exports: { '.': { types: './dist/types/sdk/src/index.d.ts', default: './dist/index.js' } },
    dependencies,
    optionalDependencies: newerNode,
  })
}

async function stageSdk(to: string): Promise<void> {
  const dependencies = thirdParty([manifests.sdk])
  for (const format of ['esm', 'cjs'] as const) {
    const outdir = join(to, 'dist', format)
    await bundle(dependencies, { entryPoints: [join(ROOT, 'packages/sdk/src/index.ts')], outdir, format })
    cpSync(TYPES, join(outdir, 'types'), { recursive: true })
  }
  // All code and types below this directory are CommonJS.
  writeFileSync(join(to, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n')
  const entry = (format: 'esm' | 'cjs') => ({
    types: `./dist/${format}/types/sdk/src/index.d.ts`,
    default: `./dist/${format}/index.js`,
  })
  finish(to, 'sdk', {
    files: ['dist'],
    exports: { '.': { import: entry('esm'), require: entry('cjs') } },
    // Browsers use their own WebSocket.
    browser: { ws: false },
    sideEffects: false,
    dependencies,
  })
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

/** The declarations of the SDK and of the contract types that it uses, with relative imports. */
function emitTypes(): void {
  const config = join(STAGE, 'tsconfig.json')
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
        paths: { '@islet/contract/client': [join(ROOT, 'packages/contract/src/client.ts')] },
        typeRoots: [join(ROOT, 'node_modules/@types')],
      },
      include: [],
      files: [join(ROOT, 'packages/sdk/src/index.ts')],
    }),
  )
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', config], { stdio: ['ignore', 2, 2] })
  for (const name of globSync('**/*.d.ts', { cwd: TYPES })) {
    const path = join(TYPES, name)
    const contract = `./${relative(dirname(name), 'contract/src')}/client.ts`
    const text = readFileSync(path, 'utf8')
      .replaceAll(/(from |import\()['"]@islet\/contract\/client['"]/g, `$1'${contract}'`)
      .replaceAll(/(from |import\()['"](\.[^'"]+)\.ts['"]/g, "$1'$2.js'")
    // `await using` may be newer than what the user compiles for.
    writeFileSync(path, `/// <reference lib="esnext.disposable" />\n${text}`)
  }
}

function finish(to: string, name: 'cli' | 'sdk', fields: object): void {
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
