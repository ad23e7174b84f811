// Writes what a foreign root lacks to be a sandbox into a second directory above it: the account `user`, its home, /workspace,
// mount points. The unpacked root itself stays unchanged, except that device files and file capabilities are removed.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { readAccounts, SUDOERS_USER, USER, withUser, writeAccounts } from './accounts.ts'
import { dropFileCapabilities } from './file-capabilities.ts'
import type { ImageDefaults, Tree } from './image.ts'
import { readInside, resolveInside, statInside } from './inside.ts'
import { runOk } from './run.ts'
import { type Owner, type TreeWriter, treeWriter } from './tree.ts'

export interface Wishes {
  env: Record<string, string>
  workdir?: string | undefined
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function adaptedTrees(name: string): Tree[] {
  const lower = (tree: string) => ({ kind: 'image', name, tree }) as const
  return [{ tree: 'root', at: '/', lowers: [lower('adapt'), lower('root')] }]
}

/** Writes <image>/adapt for <image>/root. */
export async function adapt(image: string, wishes: Wishes): Promise<ImageDefaults> {
  const root = join(image, 'root')
  if (!(await lstat(root)).isDirectory())
    throw new IsletError('bad_request', 'The image has no root directory.')
  // A sandbox has its own /dev.
  await runOk(['find', root, '-xdev', '(', '-type', 'b', '-o', '-type', 'c', ')', '-delete'])
  await dropFileCapabilities(root)
  const over = await overlay(root, join(image, 'adapt'))
  const shell = (await statInside(root, 'bin/bash'))?.isFile() ? '/bin/bash' : '/bin/sh'
  const files = withUser(await readAccounts((name) => readInside(root, `etc/${name}`)), shell)
  const owner = { uid: files.uid, gid: files.gid }
  await writeAccounts(over, files)
  await over.dir('etc/sudoers.d', 0o750)
  await over.file('etc/sudoers.d/islet', SUDOERS_USER, 0o440)
  for (const path of ['proc', 'sys', 'dev', 'run', '.islet', 'var']) await over.dir(path, 0o755)
  for (const path of ['tmp', 'var/tmp']) await over.dir(path, 0o1777)
  await over.dir('root', 0o700)
  await over.dir('workspace', 0o777, owner)
  await over.dir(files.home, 0o755, owner)
  const wanted = wishes.workdir?.startsWith('/') && wishes.workdir !== '/' ? wishes.workdir : undefined
  if (wanted) await over.dir(wanted, 0o755, owner)
  return { user: USER.name, workdir: wanted ?? files.home, env: { PATH, ...wishes.env } }
}

/** Writes above `root`: replaced files keep their owner and mode, and existing directories stay unchanged. */
async function overlay(root: string, into: string): Promise<Pick<TreeWriter, 'dir' | 'file'>> {
  const tree = treeWriter(into)
  const below = (path: string) => lstat(join(root, path)).catch(() => undefined)

  async function parents(path: string): Promise<void> {
    const names = path.split('/').slice(0, -1)
    for (const [i] of names.entries()) await directory(names.slice(0, i + 1).join('/'), 0o755)
  }
  async function directory(path: string, mode: number, owner?: Owner): Promise<void> {
    const stat = await below(path)
    if (stat?.isDirectory()) await tree.dir(path, stat.mode & 0o7777, stat)
    else await tree.dir(path, mode, owner)
  }

  await directory('.', 0o755)
  return {
    async dir(path, mode, owner) {
      const real = await resolveInside(root, path)
      if (real === undefined || real === '' || (await below(real))?.isDirectory()) return
      await parents(real)
      await tree.dir(real, mode, owner)
    },
    async file(path, content, mode) {
      const real = await resolveInside(root, path, 'keep')
      if (real === undefined)
        throw new IsletError(
          'bad_request',
          `The image's /${path} cannot be reached: its symlinks form a loop.`,
        )
      await parents(real)
      const stat = await below(real)
      await tree.file(
        real,
        content,
        stat?.isFile() ? stat.mode & 0o777 : mode,
        stat?.isFile() ? stat : undefined,
      )
    },
  }
}
