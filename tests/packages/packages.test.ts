// The tarballs of `npm run pack`, installed in empty directories without this repository and without a compiler.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { cleanEnv, root } from '../support/server.ts'
import { startSuite } from '../support/suite.ts'
import { Packed, say, withoutCompilers } from './packed.ts'
import { DIALECTS_TOLD, PAGE_MODULE, PROGRAMS, TOLD, typed, typedDialects } from './use.ts'

const { arch } = process
/** The programs themselves; the packages `node`, `bun` and `deno` fetch them in install scripts, which npm does not run unasked. */
const RUNTIMES = [
  `node20@npm:node-linux-${arch}@20`,
  `node22oldest@npm:node-linux-${arch}@22.13.1`,
  `bun@npm:@oven/bun-linux-${arch === 'arm64' ? 'aarch64' : arch}`,
  `deno@npm:@deno/linux-${arch}-glibc`,
]
const MAX_BUNDLE_BYTES = 40 * 1024

const packed = await Packed.make()
const project = await packed.project('project', [packed.sdk, packed.dialects, ...RUNTIMES], PROGRAMS)
const modules = join(project, 'node_modules')
const global = await packed.global()
const islet = join(global, 'bin/islet')
symlinkSync(join(global, 'lib/node_modules/islet'), join(modules, 'islet'))

const pages = createServer((request, response) => {
  const isScript = request.url === '/bundle.js'
  response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
  response.end(
    isScript ? readFileSync(join(project, 'bundle.js')) : '<script type="module" src="/bundle.js"></script>',
  )
}).listen(0, '127.0.0.1')
after(() => pages.close())
await once(pages, 'listening')
const { port } = pages.address() as AddressInfo
const origin = `http://localhost:${port}`

const suite = await startSuite({ env: { ISLET_CORS_ORIGINS: origin } })
const env = suite.server.clientEnv

test('the package holds the page at /play/', async () => {
  for (const name of ['index.html', 'app.js', 'style.css', 'icon.svg'])
    assert.ok(existsSync(join(global, 'lib/node_modules/islet/web', name)), name)
})

test('islet runs a sandbox without a compiler, on the oldest Node it names and, by handing over, on Node 20', async () => {
  const dataDir = join(packed.directory, 'data')
  mkdirSync(dataDir)
  const bare = {
    ...cleanEnv(),
    PATH: withoutCompilers(join(packed.directory, 'bin')),
    ISLET_DATA_DIR: dataDir,
  }
  for (const name of ['node20', 'node22oldest']) {
    const run = (...args: string[]) => {
      return say(join(modules, name, 'bin/node'), [islet, ...args], { cwd: packed.directory, env: bare })
    }
    assert.equal(await run('run', '--', 'python3', '-c', 'print(6*7)'), '42\n', name)
    assert.doesNotMatch(await run('setup', '--print'), /gcc|make|libc6-dev/)
  }
})

for (const [title, program, args] of [
  ['Node 20 as CommonJS', 'node20/bin/node', ['use.cjs']],
  ['Node 20 as a module', 'node20/bin/node', ['use.mjs']],
  ['Node 22 as a module', 'node22oldest/bin/node', ['use.mjs']],
  ['Bun', 'bun/bin/bun', ['use.mjs']],
  ['Bun as CommonJS', 'bun/bin/bun', ['use.cjs']],
  ['Deno', 'deno/deno', ['run', '--allow-net', '--allow-env', '--allow-read', 'use.mjs']],
] as const) {
  test(`@islet/sdk works in ${title}`, async () => {
    assert.equal((await say(join(modules, program), [...args], { cwd: project, env })).trim(), TOLD)
  })
}

test('@islet/sdk works in Node 24 as a module and as CommonJS, and so does islet, which re-exports it', async () => {
  for (const name of ['use.mjs', 'use.cjs']) {
    assert.equal((await say(process.execPath, [name], { cwd: project, env })).trim(), TOLD, name)
  }
  writeFileSync(join(project, 'islet.mjs'), PROGRAMS['use.mjs'].replace('@islet/sdk', 'islet'))
  assert.equal((await say(process.execPath, ['islet.mjs'], { cwd: project, env })).trim(), TOLD)
})

test('the dialects of both packages work in Node 20 and in Bun, as modules and as CommonJS', async () => {
  for (const program of ['node20/bin/node', 'bun/bin/bun']) {
    for (const name of ['dialects.mjs', 'dialects.cjs']) {
      const told = await say(join(modules, program), [name], { cwd: project, env })
      assert.equal(told.trim(), DIALECTS_TOLD, `${program} ${name}`)
    }
  }
})

test('every dialect is an entry point of both packages', () => {
  const exportsOf = (path: string) =>
    Object.keys(JSON.parse(readFileSync(join(modules, path, 'package.json'), 'utf8')).exports)
  assert.deepEqual(exportsOf('islet'), ['.', ...exportsOf('@islet/dialects')])
  const inClone = JSON.parse(readFileSync(join(root, 'packages/cli/package.json'), 'utf8')).exports
  assert.deepEqual(Object.keys(inClone), exportsOf('islet'))
})

test('the types pass a strict compiler that checks libraries too, for modules, CommonJS and bundlers', async () => {
  const sources = { 'a.mts': '@islet/sdk', 'b.cts': '@islet/sdk', 'c.mts': 'islet' }
  for (const [name, from] of Object.entries(sources)) writeFileSync(join(project, name), typed(from))
  const ofDialects = { 'd.mts': '@islet/dialects', 'e.cts': '@islet/dialects', 'f.mts': 'islet' }
  for (const [name, from] of Object.entries(ofDialects))
    writeFileSync(join(project, name), typedDialects(from))
  for (const [module, resolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ]) {
    // No @types/node: the DOM's types are enough.
    const compilerOptions = {
      ...{ module, moduleResolution: resolution, target: 'es2022', lib: ['es2022', 'dom'], types: [] },
      ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true },
    }
    const config = { compilerOptions, files: Object.keys({ ...sources, ...ofDialects }) }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
    assert.equal(await say(join(root, 'node_modules/.bin/tsc'), ['-p', project]), '')
  }
})

test('@islet/sdk works in a page, from a bundle of at most 40 KB gzipped, if the server names the origin of the page', async () => {
  writeFileSync(join(project, 'page.js'), PAGE_MODULE)
  const { outputFiles } = await build({
    ...{ entryPoints: [join(project, 'page.js')], outfile: join(project, 'bundle.js'), write: false },
    ...{ bundle: true, minify: true, platform: 'browser', format: 'esm', tsconfigRaw: {} },
  })
  const [bundle] = outputFiles
  const bytes = gzipSync(bundle!.contents).length
  assert.ok(bytes <= MAX_BUNDLE_BYTES, `${bytes} bytes`)
  writeFileSync(bundle!.path, bundle!.contents)

  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // Root has no sandbox of Chromium's own; the page is ours.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
  try {
    const page = await browser.newPage()
    const options = JSON.stringify({ url: suite.server.url, apiKey: suite.server.key, retries: 0 })
    const use = async (from: string) => {
      await page.goto(from)
      return page.evaluate(`use(${options}).catch((error) => error.code)`)
    }
    assert.equal(await use(origin), TOLD)
    assert.equal(await use(`http://127.0.0.1:${port}`), 'connection_failed')
  } finally {
    await browser.close()
  }
})
