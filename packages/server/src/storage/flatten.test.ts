// Stacks of layers that overlay itself made of random changes, told from what flatten makes of them. Directories are moved and made
// anew far more often than anybody would, under few names, so that whiteouts, opaque directories and redirects meet in every way.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Warden } from '../warden/warden.ts'

const ROUNDS = 10
const LAYERS = 6
const CHANGES = 30
/** A number repeats a round that failed. */
const { FLATTEN_SEED } = process.env
const SEEDS = FLATTEN_SEED ? [Number(FLATTEN_SEED)] : Array.from({ length: ROUNDS }, () => randomInt(2 ** 32))
/** As the warden mounts them. */
const OPTIONS = 'redirect_dir=on,index=off,xino=off,metacopy=off'
const skip = process.getuid?.() === 0 ? undefined : 'layers need root'

test('a stack of layers looks the same when some upper layers are merged', { skip }, async (t) => {
  const { warden, layers, image, show } = await open(t)
  for (const seed of SEEDS) {
    const random = randomOf(seed)
    const stack: string[] = []
    for (let i = 0; i < LAYERS; i++) {
      const name = `layer-${i}`
      show([...stack.map(treeOf), image], name, (top) => {
        for (let n = 0; n < CHANGES; n++) change(top, random)
      })
      stack.unshift(name)
    }
    const stacked = show([...stack.map(treeOf), image], 'top', describeTree)
    const count = 1 + random(LAYERS)
    await warden.request('LAYER_FLATTEN', { from: stack.slice(0, count), to: 'flat' })
    const flat = show(['flat', ...stack.slice(count)].map(treeOf).concat(image), 'flat-top', describeTree)
    assert.deepEqual(flat, stacked, `the upper ${count} of FLATTEN_SEED=${seed}`)
    for (const name of readdirSync(layers)) rmSync(join(layers, name), { recursive: true })
  }
})

async function open(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'islet-flatten-'))
  let warden: Warden | undefined
  t.after(async () => {
    await warden?.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const names = { bridge: 'isltest0', cgroup: `isltest-flatten-${process.pid}`, runDir: join(dataDir, 'run') }
  warden = await Warden.start({
    dataDir,
    ...names,
    uidStart: 2030 * 65536,
    uidCount: 4,
    method: 'copy',
  })
  const layers = join(dataDir, 'pool/layers')
  const image = join(dataDir, 'image')
  for (const path of ['a/b/c', 'b/a', 'c', 'd/e/f']) {
    mkdirSync(join(image, path), { recursive: true })
    writeFileSync(join(image, path, 'file'), path)
  }
  const top = join(dataDir, 'top')
  mkdirSync(top)
  /** Works on the overlay of these, topmost first, with a new layer over them. */
  function show<T>(lowers: string[], upper: string, work: (top: string) => T): T {
    for (const name of ['root', 'root.work']) mkdirSync(join(layers, upper, name), { recursive: true })
    const dirs = `lowerdir=${lowers.join(':')},upperdir=${treeOf(upper)},workdir=${treeOf(upper)}.work`
    execFileSync('mount', ['-t', 'overlay', 'islet', '-o', `${dirs},${OPTIONS}`, top], { cwd: layers })
    try {
      return work(top)
    } finally {
      execFileSync('umount', [top])
    }
  }
  return { warden, layers, image, show }
}

const treeOf = (layer: string) => `${layer}/root`

function change(top: string, random: (below: number) => number): void {
  const pick = <T>(of: T[]): T => of[random(of.length)]!
  const { directories, files } = walk(top)
  const below = directories.filter((path) => path !== top)
  const fresh = join(pick(directories), pick(['a', 'b', 'c', 'd', 'e', 'f', 'file', 'other']))
  const isFree = !existsSync(fresh)
  const way = random(16)
  if (way < 5 && isFree) writeFileSync(fresh, `${random(2 ** 32)}`)
  else if (way < 8 && isFree) mkdirSync(fresh)
  else if (way === 8 && files.length > 0) rmSync(pick(files))
  else if (way === 9 && files.length > 0 && isFree) renameSync(pick(files), fresh)
  else if (way === 10 && below.length > 0) {
    const path = pick(below)
    rmSync(path, { recursive: true })
    if (random(4) > 0) mkdirSync(path)
  } else if (way > 10 && below.length > 0 && isFree) {
    const path = pick(below)
    if (!`${fresh}/`.startsWith(`${path}/`)) move(path, fresh)
  }
}

/** Overlay moves nothing whose path has become too long to write down. */
function move(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
  }
}

function walk(top: string): { directories: string[]; files: string[] } {
  const directories = [top]
  const files: string[] = []
  for (const directory of directories) {
    for (const entry of readdirSync(directory, { withFileTypes: true }))
      (entry.isDirectory() ? directories : files).push(join(directory, entry.name))
  }
  return { directories: directories.sort(), files: files.sort() }
}

function describeTree(top: string): string[] {
  const { directories, files } = walk(top)
  const describe = (path: string, content: string) =>
    `${path.slice(top.length)} ${lstatSync(path, { bigint: true }).mtimeNs} ${content}`
  return [
    // Not the root itself: its own is the new layer over it.
    ...directories.slice(1).map((path) => describe(path, '')),
    ...files.map((path) => describe(path, readFileSync(path, 'utf8'))),
  ]
}

/** mulberry32 */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) % below
  }
}
