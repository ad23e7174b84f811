// Files of an image in the making, written with natural ids and modes whatever the server's umask is.
import { constants } from 'node:fs'
import { chmod, chown, lstat, mkdir, open, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface Owner {
  uid: number
  gid: number
}

const ROOT: Owner = { uid: 0, gid: 0 }

/** Writes below one directory that only we write to: a fresh tree, never an unpacked one. */
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
      // chown and chmod follow links, and a link may have been copied here from the machine.
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
