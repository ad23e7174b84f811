// Finds the files of the page at /play/. The package has them; in a clone they are built when they are missing or older than their sources.
import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'
import { Shared } from '../../lib/shared.ts'

/** In the package the code is in dist/, beside web/. */
const PACKED = fileURLToPath(new URL('../web', import.meta.url))
const CLONE = fileURLToPath(new URL('../../../../..', import.meta.url))
const BUILT = join(CLONE, 'packages/web/dist')
const SOURCES = ['web', 'sdk', 'contract'].map((name) => `packages/${name}/src/**/*.*`)

const building = new Shared<void>()
const known = new Map<string, Buffer>()

/** The content of one of its files. */
export async function builtFile(name: string): Promise<Buffer> {
  const found = known.get(name)
  if (found) return found
  const isPacked = existsSync(PACKED)
  if (!isPacked && !isFresh()) await building.run('web', build)
  const content = readFileSync(join(isPacked ? PACKED : BUILT, name))
  if (isPacked) known.set(name, content)
  return content
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
      hint: 'Run npm ci in the clone: the page needs esbuild and xterm.js.',
      cause,
    })
  }
}
