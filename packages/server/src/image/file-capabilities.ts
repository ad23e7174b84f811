// Removes file capabilities (`setcap`). The kernel refuses to start a program whose capabilities are outside of the sandbox's
// bounding set, so `ping` with cap_net_raw could not be executed. A sandbox does not need them: sudo gives all rights inside, low
// ports are open to everybody, and ping uses an unprivileged socket.
import { constants } from 'node:fs'
import { copyFile, lstat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { runOk } from './run.ts'
import { type TreeWriter, treeWriter } from './tree.ts'

/** In an image with more such files, the rest keep their capabilities. */
const MAX_FILES = 1000

/**
 * Prints the regular files with capabilities below its arguments, each followed by a NUL. getcap prints names unescaped, with line
 * breaks, so its output is not parsed: only whether it prints anything for a group of files. The groups get smaller and smaller.
 */
const FIND = `command -v getcap >/dev/null || exit 127
narrow() { xargs -0 -r -n "$1" sh -c '[ -z "$(getcap "$@")" ] || printf "%s\\0" "$@"' sh; }
find "$@" -xdev -type f -print0 | narrow 1000 | narrow 30 | narrow 1 | head -z -n ${MAX_FILES}`

/** Removes the capabilities of all files of an unpacked image. */
export async function dropFileCapabilities(root: string): Promise<void> {
  // setcap fails for a hard link to a file that was handled already, which does not matter.
  await runOk(['sh', '-c', `${FIND} | xargs -0 -r -n 1 setcap -r || true`, 'sh', root])
}

/**
 * The machine's own programs cannot be changed, so copies without capabilities are written to `into`, which is mounted above the
 * machine's /usr. Returns whether there are any.
 */
export async function shadowFileCapabilities(hostRoot: string, into: string): Promise<boolean> {
  let tree: TreeWriter | undefined
  // Without getcap on the machine, programs with capabilities cannot be started inside; all others can.
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
