// Bundles the page at /play/.
//
//   node scripts/web.ts DIRECTORY   writes its files there
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const SOURCE = fileURLToPath(new URL('../packages/web/src', import.meta.url))

if (import.meta.main) await bundleWeb(resolve(process.argv[2]!))

/** Each file is replaced at once: servers that start together may build it at the same time. */
export async function bundleWeb(to: string): Promise<void> {
  const { outputFiles, warnings } = await build({
    entryPoints: [join(SOURCE, 'app.ts'), join(SOURCE, 'style.css')],
    outdir: to,
    write: false,
    bundle: true,
    minify: true,
    platform: 'browser',
    target: 'es2022',
    format: 'esm',
    // The SDK loads it in Node only.
    external: ['ws'],
    tsconfigRaw: {},
  })
  if (warnings.length > 0) throw new Error('esbuild warns; see above')
  mkdirSync(to, { recursive: true })
  const files = outputFiles.map(({ path, contents }) => [basename(path), contents] as const)
  // The page comes last: if it is there, so is what it loads.
  for (const name of ['icon.svg', 'index.html']) files.push([name, readFileSync(join(SOURCE, name))])
  for (const [name, contents] of files) {
    const temporary = join(to, `.${name}.${process.pid}`)
    writeFileSync(temporary, contents)
    renameSync(temporary, join(to, name))
  }
}
