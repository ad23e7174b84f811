// The minimum cost of moving data: cp on the same disk, with all bytes copied (no reflink).
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Samples, sample } from '../measure.ts'
import { TRANSFER_BYTES, TREE } from '../sizes.ts'

const execute = promisify(execFile)

/** `cp` of the transferred file over an existing target, as when a file is overwritten. */
export async function fileCopier(directory: string): Promise<() => Promise<void>> {
  const [from, to] = [join(directory, 'from'), join(directory, 'to')]
  await writeFile(from, Buffer.alloc(TRANSFER_BYTES, 7))
  const copy = async () => void (await execute('cp', ['--reflink=never', from, to]))
  await copy()
  return copy
}

/** Milliseconds of `cp -a` of the tree that is checkpointed and forked. */
export async function copyTree(directory: string, rounds: number): Promise<Samples> {
  const from = join(directory, 'tree')
  const content = Buffer.alloc(TREE.bytes / TREE.files, 7)
  for (let file = 0; file < TREE.files; file++) {
    const folder = join(from, String(Math.floor(file / TREE.perFolder)))
    if (file % TREE.perFolder === 0) await mkdir(folder, { recursive: true })
    await writeFile(join(folder, String(file)), content)
  }
  const copied = await sample('cp -a', rounds, 0, (index) =>
    execute('cp', ['-a', '--reflink=never', from, join(directory, `copy-${index}`)]),
  )
  await rm(directory, { recursive: true })
  return copied.summary()
}
