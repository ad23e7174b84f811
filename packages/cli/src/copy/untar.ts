// Unpacks a tar from a sandbox, which is hostile input. Nothing is written outside the directory. Symbolic links are created
// last, so that nothing is written through them. Devices, setuid bits and owners are dropped.
import { chmod, link, lstat, mkdir, open, rm, symlink, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { CliError } from '../errors.ts'
import { type TarHeader, TarReader } from './tar-reader.ts'

export async function untar(
  source: AsyncIterable<Uint8Array>,
  directory: string,
): Promise<{ count: number; skipped: string[] }> {
  await mkdir(directory, { recursive: true })
  const reader = new TarReader(source)
  const checked = new Set([directory])
  const directories: TarHeader[] = []
  const links: TarHeader[] = []
  const skipped: string[] = []
  let count = 0
  for (let header = await reader.next(); header; header = await reader.next()) {
    const path = inside(directory, header.path)
    count++
    if (header.type === 'directory') {
      await makeDirectory(directory, path, checked)
      directories.push(header)
    } else if (header.type === 'file') {
      await makeDirectory(directory, dirname(path), checked)
      await writeFile(path, header, reader)
    } else if (header.type === 'symlink') links.push(header)
    else if (header.type === 'hardlink') {
      await makeDirectory(directory, dirname(path), checked)
      const target = inside(directory, header.target)
      await makeDirectory(directory, dirname(target), checked)
      await rm(path, { force: true })
      await link(target, path)
    } else skipped.push(header.path)
  }
  for (const header of links) {
    const path = inside(directory, header.path)
    await makeDirectory(directory, dirname(path), checked)
    await rm(path, { force: true })
    await symlink(header.target, path)
  }
  // Deepest first: the mode of a directory may forbid changes below it.
  for (const header of directories.reverse()) {
    const path = inside(directory, header.path)
    await chmod(path, header.mode & 0o777)
    await utimes(path, header.modifiedAt, header.modifiedAt)
  }
  return { count, skipped }
}

/** The path of an entry; throws if it is outside the directory. */
function inside(directory: string, path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (path.startsWith('/') || parts.includes('..') || path.includes('\0')) {
    throw new CliError('unsafe_archive', `The sandbox sent a file for ${JSON.stringify(path)}; stopped.`, {
      hint: 'A program in the sandbox tampers with the transfer: do not trust its files.',
    })
  }
  return join(directory, ...parts)
}

async function writeFile(path: string, header: TarHeader, reader: TarReader): Promise<void> {
  await rm(path, { force: true })
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const part of reader.content()) await file.writeFile(part)
    await file.chmod(header.mode & 0o777)
    await file.utimes(header.modifiedAt, header.modifiedAt)
  } finally {
    await file.close()
  }
}

/** Makes every part below `directory` a real directory, not a link to one. */
async function makeDirectory(directory: string, path: string, checked: Set<string>): Promise<void> {
  if (checked.has(path)) return
  await makeDirectory(directory, dirname(path), checked)
  const found = await lstat(path).catch(() => undefined)
  if (found && !found.isDirectory()) await rm(path)
  if (!found?.isDirectory()) await mkdir(path)
  checked.add(path)
}
