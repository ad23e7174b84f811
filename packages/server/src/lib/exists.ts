import { lstat } from 'node:fs/promises'

/** Whether a path names anything; a dangling symlink counts. */
export function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
