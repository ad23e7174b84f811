// Finds the files of the page at /play/. The package has them; in a clone they are built, once for each server, when they are missing or
// older than their sources.
import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'

/** In the package the code is in dist/, beside web/. */
const PACKED = fileURLToPath(new URL('../web', import.meta.url))
const CLONE = fileURLToPath(new URL('../../../../..', import.meta.url))
const BUILT = join(CLONE, 'packages/web/dist')
const SOURCES = ['web', 'sdk', 'contract'].map((name) => `packages/${name}/src/**/*.*`)

let directory: Promise<string> | undefined
const known = new Map<string, Buffer>()

/** The content of one of its files. Anyone may ask, so each is read once. */
export async function builtFile(name: string): Promise<Buffer> {
  directory ??= find()
  const path = join(await directory, name)
  const content = known.get(name) ?? readFileSync(path)
  known.set(name, content)
  return content
}

async function find(): Promise<string> {
  if (existsSync(PACKED)) return PACKED
  if (!isFresh()) await build()
  return BUILT
}

function isFresh(): boolean {
  const builtAt = modifiedAt(join(BUILT, 'index.html'))
  return SOURCES.flatMap((glob) => globSync(glob, { cwd: CLONE })).every(
    (source) => modifiedAt(join(CLONE, source)) <= builtAt,
  )
}

/** 0: it does not exist. */
function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

async function build(): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, [join(CLONE, 'scripts/web.ts'), BUILT])
  } catch (cause) {
    throw new IsletError('not_supported', 'The page at /play/ could not be built.', {
      hint: 'Run npm ci in the clone, because the page needs esbuild and xterm.js, and restart the server.',
      cause,
    })
  }
}
