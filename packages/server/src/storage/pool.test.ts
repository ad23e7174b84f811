import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../../tests/coming-from/until.ts'
import { needs } from '../../../../tests/support/programs.ts'
import { openPool } from './pool.ts'

needs('mkfs.btrfs')

const MIB = 1024 ** 2
const SIZE = 512 * MIB
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
  afterEach(async () => {
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(dataDir), 'a mount is left')
    // The kernel frees it only when no other program, such as losetup in another test, has it open.
    await until(() => !sh('losetup -a').includes(dataDir))
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('is a mounted btrfs file with all blocks reserved, and is unmounted by close', async () => {
    const pool = await openPool({ dataDir, sizeBytes: SIZE })
    assert.equal(pool.method, 'btrfs')
    assert.match(readFileSync('/proc/self/mountinfo', 'utf8'), new RegExp(`${dataDir}/pool .* btrfs `))
    assertReserved()
    await pool.close()
    await pool.close()
  })

  it('grows to its limit before its content needs the room', async () => {
    const pool = await openPool({ dataDir, sizeBytes: SIZE })
    await until(() => image().size === SIZE && pool.elastic!.room().moreBytes === 0)
    sh('dd if=/dev/zero of="$0" bs=1M count=300 status=none; sync -f "$0"', join(pool.dir, 'file'))
    assert.ok(pool.elastic!.room().freeBytes < 200 * MIB)
    assertReserved()
    rmSync(join(pool.dir, 'file'))
    sh('sync -f "$0"', pool.dir)
    await until(() => pool.elastic!.room().freeBytes > 400 * MIB)
    await pool.close()
  })

  it('gives unused room back to the machine', async () => {
    const pool = await openPool({ dataDir, sizeBytes: 4096 * MIB })
    await pool.elastic!.close()
    sh('fallocate -l 4G "$0"', join(dataDir, 'pool.img'))
    const again = await openPool({ dataDir, sizeBytes: 4096 * MIB })
    writeFileSync(join(again.dir, 'file'), 'kept')
    await again.elastic!.shrink()
    assert.ok(image().size < 2048 * MIB)
    assert.equal(statfsSync(again.dir).blocks * 4096, image().size)
    assert.equal(readFileSync(join(again.dir, 'file'), 'utf8'), 'kept')
    await again.close()
  })

  it('leaves the reserve of the machine free', async () => {
    const pool = await openPool({ dataDir, sizeBytes: SIZE, reserveBytes: 2 ** 50 })
    assert.equal(pool.elastic!.room().moreBytes, 0)
    await sleep(300)
    assert.equal(image().size, 256 * MIB)
    await pool.close()
  })

  it('finishes a step of growth that a kill cut off: a longer file, a longer device', async () => {
    const cuts = [
      (path: string) => sh('fallocate -l 300M "$0"', path),
      (path: string) => sh('fallocate -l 400M "$0"; losetup -c $(losetup -j "$0" -n -O NAME)', path),
      (path: string) => sh('truncate -s 450M "$0"', path),
    ]
    const path = join(dataDir, 'pool.img')
    let pool = await openPool({ dataDir, sizeBytes: SIZE, reserveBytes: 2 ** 50 })
    for (const cut of cuts) {
      await pool.elastic!.close()
      cut(path)
      pool = await openPool({ dataDir, sizeBytes: SIZE, reserveBytes: 2 ** 50 })
      const { blocks, bsize } = statfsSync(pool.dir)
      assert.equal(blocks * bsize, image().size)
    }
    await pool.close()
  })

  it('reserves the blocks of a sparse file of an older version, and keeps its content', async () => {
    const path = join(dataDir, 'pool.img')
    mkdirSync(join(dataDir, 'pool'))
    sh('truncate -s 20G "$0"; mkfs.btrfs -q -m single "$0"; mount "$0" "$1"', path, join(dataDir, 'pool'))
    sh('echo kept > "$0/file"; umount "$0"', join(dataDir, 'pool'))
    const pool = await openPool({ dataDir, sizeBytes: 20 * 1024 * MIB, log: assert.fail })
    assert.ok(image().size < 2048 * MIB)
    assertReserved()
    assert.equal(readFileSync(join(pool.dir, 'file'), 'utf8'), 'kept\n')
    await pool.close()
  })

  it('keeps its blocks when the machine trims all its disks', async () => {
    const pool = await openPool({ dataDir, sizeBytes: SIZE })
    assert.throws(() => sh('fstrim "$0" 2>/dev/null', pool.dir))
    assertReserved()
    await pool.close()
  })

  const image = () => statSync(join(dataDir, 'pool.img'))
  function assertReserved(): void {
    const { size, blocks } = image()
    assert.ok(blocks * 512 >= size, `${blocks * 512} bytes of ${size}`)
  }

  it('keeps its content', async () => {
    const first = await openPool({ dataDir, sizeBytes: SIZE })
    writeFileSync(join(first.dir, 'file'), 'kept')
    await first.close()
    const second = await openPool({ dataDir, sizeBytes: SIZE })
    assert.equal(readFileSync(join(second.dir, 'file'), 'utf8'), 'kept')
    await second.close()
  })

  it('is taken over when an earlier server was killed', async () => {
    await openPool({ dataDir, sizeBytes: SIZE })
    const pool = await openPool({ dataDir, sizeBytes: SIZE })
    assert.equal(pool.mounted, true)
    await pool.close()
  })

  it('tells when it becomes read-only, and the next server mounts it again', async () => {
    const first = await openPool({ dataDir, sizeBytes: SIZE })
    writeFileSync(join(first.dir, 'file'), 'kept')
    sh('mount -o remount,ro "$0"', first.dir)
    assert.match(await first.elastic!.broken, /read-only/)
    await first.elastic!.close()
    let isEnded = false
    const endUsers = async () => {
      isEnded = true
    }
    const pool = await openPool({ dataDir, sizeBytes: SIZE, endUsers })
    assert.ok(isEnded)
    assert.equal(readFileSync(join(pool.dir, 'file'), 'utf8'), 'kept')
    writeFileSync(join(pool.dir, 'file'), 'written')
    await pool.close()
  })

  it('goes on after a kill: a half-made file, then a loop device without a mount', async () => {
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

  it('is a plain directory, with a log line, if it cannot be a file', async () => {
    mkdirSync(join(dataDir, 'pool.img.tmp'))
    writeFileSync(join(dataDir, 'pool.img.tmp/in-the-way'), '')
    const lines: string[] = []
    const pool = await openPool({ dataDir, sizeBytes: SIZE, log: (line) => lines.push(line) })
    assert.deepEqual([pool.method, pool.mounted], ['auto', false])
    assert.match(lines[0]!, /^no btrfs pool \(.*\): layers are plain directories/)
    await assert.rejects(openPool({ dataDir, sizeBytes: SIZE, method: 'btrfs' }))
    await pool.close()
  })

  it('is a plain directory without a log line on request', async () => {
    const pool = await openPool({ dataDir, method: 'copy', log: assert.fail })
    assert.deepEqual(
      [pool.method, pool.mounted, existsSync(join(dataDir, 'pool.img'))],
      ['copy', false, false],
    )
    await pool.close()
  })
})
