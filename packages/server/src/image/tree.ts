// Writes the files of an image with exact ids and modes, independent of the server's umask.
import { constants } from 'node:fs'
import { chmod, chown, lstat, mkdir, open, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface Owner {
  uid: number
  gid: number
}

const ROOT: Owner = { uid: 0, gid: 0 }

/** Files of /etc in all images made here. pip may install anywhere: the system has no other owner to protect. */
export const COMMON_ETC: Readonly<Record<string, string>> = {
  hostname: 'islet\n',
  hosts: '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n',
  'pip.conf': '[global]\nbreak-system-packages = true\n',
}

/** Writes below a directory that only the server writes to: a new tree, never an unpacked one. */
export interface TreeWriter {
  dir(path: string, mode: number, owner?: Owner): Promise<void>
  file(path: string, content: string | Uint8Array, mode: number, owner?: Owner): Promise<void>
  link(path: string, target: string): Promise<void>
}

export function treeWriter(root: string): TreeWriter {
  const at = (path: string) => join(root, path)
  const made = new Set(['.', '/'])

  async function parents(path: string): Promise<void> {
    const parent = dirname(path)
    if (made.has(parent)) return
    if (!(await isDirectory(at(parent)))) {
      await parents(parent)
      await mkdir(at(parent))
      await chmod(at(parent), 0o755)
    }
    made.add(parent)
  }

  return {
    async dir(path, mode, owner = ROOT) {
      await parents(path)
      await mkdir(at(path)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
      })
      // chown and chmod follow symlinks, and a symlink may have been copied here from the machine.
      if (!(await isDirectory(at(path)))) return
      await chown(at(path), owner.uid, owner.gid)
      await chmod(at(path), mode)
    },
    async file(path, content, mode, owner = ROOT) {
      await parents(path)
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW
      const handle = await open(at(path), flags, 0o600)
      try {
        await handle.writeFile(content)
        await handle.chown(owner.uid, owner.gid)
        await handle.chmod(mode)
      } finally {
        await handle.close()
      }
    },
    async link(path, target) {
      await parents(path)
      await symlink(target, at(path))
    },
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return lstat(path).then(
    (stat) => stat.isDirectory(),
    () => false,
  )
}
