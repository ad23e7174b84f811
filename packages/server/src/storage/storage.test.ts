import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { needs } from '../../../../tests/support/programs.ts'
import { type StorageCase, storageSuite } from './storage.suite.ts'

needs('mkfs.xfs')

const run = promisify(execFile)
const UIDS = 65536

const plainDirectory: StorageCase['prepare'] = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'islet-storage-'))
  return { dataDir, cleanUp: async () => rmSync(dataDir, { recursive: true, force: true }) }
}

const xfsOnLoop: StorageCase['prepare'] = async () => {
  const place = mkdtempSync(join(tmpdir(), 'islet-storage-xfs-'))
  const image = join(place, 'xfs.img')
  const dataDir = join(place, 'data')
  chmodSync(place, 0o755)
  mkdirSync(dataDir)
  writeFileSync(image, '')
  truncateSync(image, 1024 ** 3)
  await run('mkfs.xfs', ['-q', '-m', 'reflink=1', image])
  await run('mount', ['-o', 'loop', image, dataDir])
  const cleanUp = async () => {
    await run('umount', [dataDir])
    rmSync(place, { recursive: true, force: true })
  }
  return { dataDir, cleanUp }
}

function missing(...tools: string[]): string | undefined {
  if (process.getuid?.() !== 0) return 'layers need root'
  for (const tool of tools) {
    try {
      execFileSync('sh', ['-c', 'command -v "$0"', tool], { stdio: 'ignore' })
    } catch {
      return `${tool} is not installed`
    }
  }
  return undefined
}

const cases: (StorageCase & { tools: string[] })[] = [
  {
    title: 'a btrfs pool file',
    clone: 'btrfs',
    diskLimit: true,
    method: 'btrfs',
    prepare: plainDirectory,
    uidStart: 2000 * UIDS,
    tools: ['mkfs.btrfs', 'runc'],
  },
  {
    title: 'reflinks on xfs',
    clone: 'reflink',
    diskLimit: false,
    method: 'reflink',
    prepare: xfsOnLoop,
    uidStart: 2010 * UIDS,
    tools: ['mkfs.xfs', 'runc'],
  },
  {
    title: 'plain copies',
    clone: 'copy',
    diskLimit: false,
    method: 'copy',
    prepare: plainDirectory,
    uidStart: 2020 * UIDS,
    tools: ['runc'],
  },
]

for (const { tools, ...storageCase } of cases) {
  const reason = missing(...tools)
  if (reason) test(storageCase.title, { skip: reason }, () => {})
  else storageSuite(storageCase)
}
