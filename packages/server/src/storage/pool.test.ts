import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { needs } from '../../../../tests/support/programs.ts'
import { openPool } from './pool.ts'

needs('mkfs.btrfs')

const SIZE = 512 * 1024 ** 2
const sh = (script: string, ...args: string[]) =>
  execFileSync('sh', ['-c', script, ...args], { encoding: 'utf8' })
const hasBtrfs = existsSync('/usr/sbin/mkfs.btrfs') || existsSync('/sbin/mkfs.btrfs')
const reason =
  process.getuid?.() !== 0 ? 'a pool needs root' : hasBtrfs ? undefined : 'mkfs.btrfs is not installed'

describe('the pool', { skip: reason }, () => {
  let dataDir: string
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'islet-pool-'))
  })
  afterEach(() => {
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(dataDir), 'a mount is left')
    assert.ok(!sh('losetup -a').includes(dataDir), 'a loop device is left')
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('is a sparse btrfs file, mounted, and gone from the machine when closed', async () => {
    const pool = await openPool({ dataDir, sizeBytes: SIZE })
    assert.equal(pool.method, 'btrfs')
    assert.match(readFileSync('/proc/self/mountinfo', 'utf8'), new RegExp(`${dataDir}/pool .* btrfs `))
    const { size, blocks } = statSync(join(dataDir, 'pool.img'))
    assert.equal(size, SIZE)
    assert.ok(blocks * 512 < SIZE / 8)
    await pool.close()
    await pool.close()
  })

  it('keeps what is in it', async () => {
    const first = await openPool({ dataDir, sizeBytes: SIZE })
    writeFileSync(join(first.dir, 'file'), 'kept')
    await first.close()
    const second = await openPool({ dataDir, sizeBytes: SIZE })
    assert.equal(readFileSync(join(second.dir, 'file'), 'utf8'), 'kept')
    await second.close()
  })

  it('is taken over when a server before was killed', async () => {
    await openPool({ dataDir, sizeBytes: SIZE })
    const pool = await openPool({ dataDir, sizeBytes: SIZE })
    assert.equal(pool.mounted, true)
    await pool.close()
  })

  it('goes on where a kill cut it: a half-made file, then a loop device without a mount', async () => {
    writeFileSync(join(dataDir, 'pool.img.tmp'), 'half')
    await (await openPool({ dataDir, sizeBytes: SIZE })).close()
    assert.ok(!existsSync(join(dataDir, 'pool.img.tmp')))
    sh('losetup --find "$0"', join(dataDir, 'pool.img'))
    const pool = await openPool({ dataDir, sizeBytes: SIZE })
    assert.equal(
      sh('losetup -a')
        .split('\n')
        .filter((line) => line.includes(dataDir)).length,
      1,
    )
    await pool.close()
  })

  it('is a plain directory, with a line in the log, when it cannot be a file', async () => {
    mkdirSync(join(dataDir, 'pool.img.tmp'))
    writeFileSync(join(dataDir, 'pool.img.tmp/in-the-way'), '')
    const lines: string[] = []
    const pool = await openPool({ dataDir, sizeBytes: SIZE, log: (line) => lines.push(line) })
    assert.deepEqual([pool.method, pool.mounted], ['auto', false])
    assert.match(lines[0]!, /^no btrfs pool \(.*\): layers are plain directories/)
    await assert.rejects(openPool({ dataDir, sizeBytes: SIZE, method: 'btrfs' }))
    await pool.close()
  })

  it('is a plain directory without a word when asked to', async () => {
    const pool = await openPool({ dataDir, method: 'copy', log: assert.fail })
    assert.deepEqual(
      [pool.method, pool.mounted, existsSync(join(dataDir, 'pool.img'))],
      ['copy', false, false],
    )
    await pool.close()
  })
})
