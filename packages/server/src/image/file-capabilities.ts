// File capabilities (`setcap`). The kernel refuses to start a program whose capabilities are outside the bounding set of the sandbox, so
// `ping` with cap_net_raw could not even be executed. A sandbox does without them: sudo gives every right there is inside, low ports are
// open to everybody, and ping uses a socket that needs no right.
import { constants } from 'node:fs'
import { copyFile, lstat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { runOk } from './run.ts'
import { type TreeWriter, treeWriter } from './tree.ts'

/** An image with more such files than that keeps the others as they are. */
const MAX_FILES = 1000

/**
 * Prints the regular files with capabilities below its arguments, each with a NUL behind it. getcap prints names as they are, line breaks
 * and all, so its text is never read: only whether it says anything about some files. `find` names them, in smaller and smaller groups.
 */
const FIND = `command -v getcap >/dev/null || exit 127
narrow() { xargs -0 -r -n "$1" sh -c '[ -z "$(getcap "$@")" ] || printf "%s\\0" "$@"' sh; }
find "$@" -xdev -type f -print0 | narrow 1000 | narrow 30 | narrow 1 | head -z -n ${MAX_FILES}`

/** Takes the capabilities off all files of an unpacked image. */
export async function dropFileCapabilities(root: string): Promise<void> {
  // A hard link to a file that has lost its capabilities has none either: that one fails, and it does not matter.
  await runOk(['sh', '-c', `${FIND} | xargs -0 -r -n 1 setcap -r || true`, 'sh', root])
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

async function filesWithCapabilities(root: string, ...below: string[]): Promise<string[]> {
  const { stdout } = await runOk(['sh', '-c', FIND, 'sh', ...below.map((path) => join(root, path))])
  return stdout
    .split('\0')
    .slice(0, -1)
    .map((path) => relative(root, path))
}
