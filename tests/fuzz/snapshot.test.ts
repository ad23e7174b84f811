// A snapshot file on its way to another server, spoilt: packed, unpacked, or made anew with checksums that are right. It is refused with an
// error of the table or taken whole, and the server goes on.
import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { ERRORS, type ErrorCode } from '@islet/contract'
import type { IsletError } from 'islet'
import { type RawEntry, rawSnapshot } from '../../packages/server/src/control/saved/snapshot-file/testing.ts'
import { startSuite } from '../support/suite.ts'
import { Random, repeatedly, SEED } from './fuzz.ts'
import { mutated } from './values.ts'

const suite = await startSuite()

test(`a snapshot file that was tampered with is refused, or taken whole (seed ${SEED})`, async () => {
  const random = new Random(SEED + 5)
  const sandbox = await suite.create({ env: { A: '1' } })
  await sandbox.exec.run('mkdir -p d; echo text > d/file; ln -s d/file link; ln d/file hard; mkfifo fifo')
  const snapshot = await suite.islet.snapshots.create({ sandbox: sandbox.id })
  const file = await buffer(await suite.islet.snapshots.export(snapshot.id))
  const tar = zstdDecompressSync(file)
  const { size } = tarHeader(tar)
  const manifest = JSON.parse(tar.subarray(512, 512 + size).toString())
  let taken = 0
  const cases = await repeatedly(async () => {
    const bytes = random.pick([
      () => random.bytes(file),
      () => zstdCompressSync(random.bytes(tar)),
      () => zstdCompressSync(Buffer.concat([random.bytes(tar.subarray(0, 2048)), tar.subarray(2048)])),
      () => rawSnapshot({ manifest: mutated(manifest, random), trees: { 'layer/files': tree(random) } }),
      () => rawSnapshot({ manifest, store: random.text(), trees: { 'layer/files': tree(random) } }),
    ])()
    taken += Number(await isTaken(bytes))
  })
  assert.equal(await isTaken(file), true, 'the file itself is good')
  console.log(`${cases} files, ${taken} taken`)
})

async function isTaken(bytes: Uint8Array): Promise<boolean> {
  try {
    const { id } = await suite.islet.snapshots.import(bytes, { signal: AbortSignal.timeout(60_000) })
    await suite.islet.snapshots.delete(id)
    return true
  } catch (error) {
    const { code, message } = error as IsletError
    const isOfTable = Object.hasOwn(ERRORS, code) && code !== ('internal' satisfies ErrorCode)
    assert.ok(isOfTable, `${code} ${message}: ${Buffer.from(bytes).toString('base64').slice(0, 4000)}`)
    return false
  }
}

function tree(random: Random): RawEntry[] {
  const top: RawEntry = { path: 'layer/files/', type: '5' }
  return [top, ...Array.from({ length: random.below(6) }, () => entry(random))]
}

function entry(random: Random): RawEntry {
  const name = random.pick(['a', 'b', 'a/b', '..', '../x', '/x', './a', 'layer', random.text(3)])
  const entry: RawEntry = {
    path: `${random.pick(['layer/files/', 'layer/files/', ''])}${name}`,
    type: random.pick([
      '0',
      '1',
      '2',
      '3',
      '4',
      '5',
      '6',
      '7',
      'L',
      'x',
      'S',
      random.text(2).slice(0, 1) || '0',
    ]),
    link: random.pick(['', 'a', '../../../etc/passwd', '/', random.text(3)]),
    content: random.text(),
  }
  if (random.chance(0.2)) entry.device = [random.below(300), random.below(300)]
  if (random.chance(0.2)) entry.uid = random.pick(['-1', '9999999', '\x80\xff\xff', 'x'])
  if (random.chance(0.3)) {
    const key = random.pick([
      'path',
      'size',
      'uid',
      'linkpath',
      'SCHILY.xattr.security.capability',
      random.text(2),
    ])
    entry.pax = { [key]: random.text(6) }
  }
  return entry
}

function tarHeader(tar: Buffer): { size: number } {
  return { size: Number.parseInt(tar.toString('latin1', 124, 135), 8) }
}
