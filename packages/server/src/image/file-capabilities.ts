// File capabilities (`setcap`). The kernel refuses to start a program whose capabilities are outside the bounding set of the sandbox, so
// `ping` with cap_net_raw could not even be executed. A sandbox does without them: sudo gives every right there is inside, low ports are
// open to everybody, and ping uses a socket that needs no right.
import { constants } from 'node:fs'
import { copyFile, lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { resolveInside } from './inside.ts'
import { run, runOk } from './run.ts'
import { type TreeWriter, treeWriter } from './tree.ts'

/** An image with more such files than that keeps the others as they are. */
const MAX_FILES = 1000

/** Takes the capabilities off all files of an unpacked image. */
export async function dropFileCapabilities(root: string): Promise<void> {
  // A hard link to a file that has lost its capabilities has none either: that one fails, and it does not matter.
  for (const path of await filesWithCapabilities(root, '.')) await run(['setcap', '-r', join(root, path)])
}

/**
 * The machine's own programs cannot be changed: copies without capabilities are written to `into`, which is mounted above the
 * machine's /usr. Answers whether there are any.
 */
export async function shadowFileCapabilities(hostRoot: string, into: string): Promise<boolean> {
  let tree: TreeWriter | undefined
  // On a machine without getcap such programs cannot be started inside, and all others can.
  const found = await filesWithCapabilities(hostRoot, 'usr/bin', 'usr/sbin').catch(() => [])
  for (const path of found) {
    const stat = await lstat(join(hostRoot, path))
    const copy = path.slice('usr/'.length)
    tree ??= treeWriter(into)
    await tree.dir('.', 0o755)
    await tree.file(copy, '', stat.mode & 0o7777, stat)
    await copyFile(join(hostRoot, path), join(into, copy), constants.COPYFILE_FICLONE)
  }
  return tree !== undefined
}

/**
 * Paths below `root`. getcap prints a line for each file, and a file's name may hold a line break and then whatever its author likes:
 * only what is a regular file below the root, reached without a link, counts.
 */
async function filesWithCapabilities(root: string, ...below: string[]): Promise<string[]> {
  const { stdout } = await runOk(['getcap', '-r', ...below.map((path) => join(root, path))], {
    maxOutputBytes: 16 << 20,
  })
  const prefix = join(root, '/')
  const paths: string[] = []
  for (const line of stdout.split('\n')) {
    // `PATH cap_net_raw=ep`, or from an older getcap `PATH = cap_net_raw+ep`.
    const path = /^(.+?)(?: =)? \S*[=+]\S*(?: \S*[=+]\S*)*$/.exec(line)?.[1]
    if (!path?.startsWith(prefix) || paths.length === MAX_FILES) continue
    const relative = path.slice(prefix.length)
    if ((await resolveInside(root, relative, 'keep')) !== relative) continue
    const stat = await lstat(path).catch(() => undefined)
    if (stat?.isFile()) paths.push(relative)
  }
  return paths
}
