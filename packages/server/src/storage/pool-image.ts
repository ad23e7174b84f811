// The pool's file and its loop device. All blocks of the file are reserved: otherwise a write on a full disk is an I/O error for the
// filesystem in it, which then becomes read-only.
import { execFile } from 'node:child_process'
import { open as openFile, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { exists } from '../lib/exists.ts'

export const run = promisify(execFile)

export const MIB = 1024 ** 2

/** Makes a complete filesystem or nothing; an existing one stays. */
export async function makeImage(image: string, wantedBytes: () => number): Promise<void> {
  const temporary = `${image}.tmp`
  await rm(temporary, { force: true })
  if (await exists(image)) return
  const sizeBytes = wantedBytes()
  const file = await openFile(temporary, 'wx', 0o600)
  try {
    await file.truncate(sizeBytes)
    // One copy of metadata: the disk below has its own protection.
    const options = ['--quiet', '--nodiscard', '--metadata', 'single', '--label', 'islet']
    await run('mkfs.btrfs', [...options, temporary])
    await reserve(temporary, sizeBytes)
    await file.sync()
    await rename(temporary, image)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

/** Reserves blocks and makes the file `bytes` long. On an error it keeps its old length. */
export async function reserve(path: string, bytes: number): Promise<void> {
  const { size } = await stat(path)
  try {
    await run('fallocate', ['--length', String(bytes), path])
  } catch (error) {
    if ((await stat(path)).size > size) await truncate(path, size)
    throw error
  }
}

/** Bytes of the file without reserved blocks. */
export async function holeBytes(path: string): Promise<number> {
  const { size, blocks } = await stat(path)
  return Math.max(size - blocks * 512, 0)
}

export async function attach(image: string): Promise<string> {
  const { stdout } = await run('losetup', ['--find', '--show', '--nooverlap', image])
  const loop = stdout.trim()
  // If the disk supports it: otherwise written pages are in memory twice and are copied once more.
  await run('losetup', ['--direct-io=on', loop]).catch(() => {})
  return loop
}

/** Keeps discards of the filesystem, or a trim of the machine, from making holes in the file. */
export async function keepBlocks(loop: string): Promise<void> {
  await writeFile(`/sys/block/${basename(loop)}/queue/discard_max_bytes`, '0').catch(() => {})
}

/** Makes the device as long as its file. */
export async function followFile(loop: string): Promise<void> {
  await run('losetup', ['--set-capacity', loop])
}

export async function loopBytes(loop: string): Promise<number> {
  return Number(await readFile(`/sys/block/${basename(loop)}/size`, 'utf8')) * 512
}

export async function loopOf(image: string): Promise<string | undefined> {
  const { stdout } = await run('losetup', ['--associated', image, '--noheadings', '--output', 'NAME'])
  return stdout.trim().split('\n')[0] || undefined
}

export async function isAttached(loop: string): Promise<boolean> {
  if (!loop.startsWith('/dev/loop')) return false
  const { stdout } = await run('losetup', ['--list', '--noheadings', '--output', 'NAME'])
  return stdout.split('\n').some((name) => name.trim() === loop)
}
