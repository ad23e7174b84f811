import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Gaps } from './gaps.ts'
import { type Harness, LIMITS, openBox } from './harness.ts'

const MIB = 1024 * 1024
const HOG = [
  '/usr/bin/python3',
  '-c',
  'x = bytearray(512 * 1024 * 1024)\nfor i in range(0, len(x), 4096): x[i] = 1',
]

export function limits(harness: () => Harness, gaps: Gaps): void {
  it(
    'kills what uses more memory than allowed, counts it, and keeps the guest',
    gaps.unless('memoryKill'),
    async () => {
      const { engine } = harness()
      await using box = await openBox(harness(), { limits: { ...LIMITS, memoryBytes: 64 * MIB } })
      const { code, signal } = await box.run(HOG)
      assert.deepEqual({ code, signal }, { code: 0, signal: 9 })
      assert.ok((await engine.usage(box.cell)).oomKills >= 1)
      assert.equal(await box.print('echo alive'), 'alive')
      const { memoryBytes, memoryPeakBytes } = await engine.usage(box.cell)
      assert.ok(
        memoryPeakBytes <= 64 * MIB && memoryBytes <= memoryPeakBytes,
        `${memoryBytes} ${memoryPeakBytes}`,
      )
    },
  )

  it(
    'bounds the memory of a sandbox, and a neighbour does not feel it',
    gaps.unless('memoryLimit'),
    async () => {
      const { engine } = harness()
      await using neighbour = await openBox(harness())
      await using box = await openBox(harness(), { limits: { ...LIMITS, memoryBytes: 64 * MIB } })
      // If the whole sandbox was killed, no guest answers.
      box.run(HOG).catch(() => {})
      while ((await engine.usage(box.cell)).oomKills === 0) await sleep(20)
      assert.ok((await engine.usage(box.cell)).memoryPeakBytes <= 64 * MIB)
      assert.equal(await neighbour.print('echo fine'), 'fine')
      assert.equal(await engine.alive(neighbour.cell), true)
    },
  )

  it('lets programs see their memory limit', gaps.unless('memoryLimit'), async () => {
    await using box = await openBox(harness(), { limits: { ...LIMITS, memoryBytes: 96 * MIB } })
    const files = '/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes'
    assert.equal(await box.print(`cat ${files} 2> /dev/null; true`), String(96 * MIB))
    // gVisor's kernel reports its own figures; the limit is enforced outside.
    if (gaps.isolation === 'gvisor') return
    assert.notEqual(
      (await box.run(`for f in ${files}; do [ -e $f ] && echo 1000000000 > $f && exit 0; done; exit 1`)).code,
      0,
    )
  })

  it('shows programs the memory and cores that the sandbox has', gaps.unless('memoryLimit'), async () => {
    const { engine } = harness()
    await using box = await openBox(harness(), { limits: { ...LIMITS, memoryBytes: 96 * MIB } })
    const total = "sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo"
    assert.equal(await box.print(total), String(96 * 1024))
    // gVisor's kernel keeps the figures of its start.
    if (gaps.isolation === 'gvisor') return
    assert.equal(await box.print('cat /sys/devices/system/cpu/online'), '0')
    const free = "sed -n 's/^MemAvailable: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo"
    await engine.show!(box.cell, { ...LIMITS, memoryBytes: 96 * MIB })
    const available = Number(await box.print(free))
    assert.ok(available > 0 && available < 96 * 1024, String(available))
    const cores = availableParallelism()
    await engine.limit(box.cell, { memoryBytes: 200 * MIB, cpuMillis: cores * 1000, pids: 100 })
    assert.equal(await box.print(total), String(200 * 1024))
    assert.equal(await box.print('cat /sys/devices/system/cpu/online'), cores === 1 ? '0' : `0-${cores - 1}`)
    for (const file of ['/proc/meminfo', '/sys/devices/system/cpu/online', '/.islet/meminfo'])
      assert.notEqual((await box.run(`echo x > ${file} || umount ${file}`)).code, 0, file)
  })

  it('counts files in /dev/shm as memory', gaps.unless('memoryLimit'), async () => {
    await using box = await openBox(harness(), { limits: { ...LIMITS, memoryBytes: 64 * MIB } })
    assert.notEqual((await box.run('dd if=/dev/zero of=/dev/shm/x bs=1M count=256')).code, 0)
    await box.run('rm -f /dev/shm/x')
    assert.equal(await box.print('echo alive'), 'alive')
  })

  it('bounds a fork bomb, and a neighbour does not feel it', gaps.unless('pidsLimit'), async () => {
    const { engine } = harness()
    await using neighbour = await openBox(harness())
    await using box = await openBox(harness(), { limits: { ...LIMITS, cpuMillis: 300, pids: 40 } })
    const bomb = box.run('b() { b | b & }; b; sleep 1000', { timeoutMs: 3000 }).catch(() => {})
    for (let i = 0; i < 5; i++) {
      assert.equal(await neighbour.print('echo fine'), 'fine')
      // gVisor needs a few tasks of the machine for each of its own.
      if (gaps.isolation !== 'gvisor') assert.ok((await engine.usage(box.cell)).pids <= 40)
      await sleep(100)
    }
    await bomb
    assert.equal(await engine.alive(box.cell), true)
  })

  it('lets a sandbox that watches all it can take nothing from another', gaps.unless('wall'), async () => {
    await using neighbour = await openBox(harness())
    await using box = await openBox(harness())
    // As several users: the limit must not apply per user.
    const hog = `import ctypes, os, resource, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
init = ctypes.CDLL(None).inotify_init1
for uid in (0, 1000, 1001):
    os.seteuid(0)
    os.seteuid(uid)
    while init(0) >= 0: pass
os.seteuid(0)
open('/tmp/full', 'w')
while os.path.exists('/tmp/full'): time.sleep(0.02)`
    const hogging = box.run(['/usr/bin/python3', '-c', hog], { timeoutMs: 60_000 })
    while ((await box.run('test -e /tmp/full')).code !== 0) await sleep(20)
    const watch = ['/usr/bin/python3', '-c', 'import ctypes; print(ctypes.CDLL(None).inotify_init1(0) >= 0)']
    assert.equal(await neighbour.print(watch), 'True')
    // gVisor counts them as memory, and nowhere else.
    if (gaps.isolation !== 'gvisor') assert.equal(await box.print(watch), 'False')
    assert.equal((await box.run('rm /tmp/full')).code, 0)
    await hogging
  })

  it(
    'bounds what all sandboxes together take, so that the machine has room',
    gaps.unless('wall'),
    async () => {
      const { cgroup } = harness().instance
      const read = async (...names: string[]) => {
        const texts = names.map((name) => readFile(join('/sys/fs/cgroup', name), 'utf8').catch(() => ''))
        return (await Promise.all(texts)).join('').trim()
      }
      const memory = Number(await read(`${cgroup}/memory.max`, `memory/${cgroup}/memory.limit_in_bytes`))
      assert.ok(memory > 0 && memory < totalmem(), String(memory))
      const pids = Number(await read(`${cgroup}/pids.max`, `pids/${cgroup}/pids.max`))
      assert.ok(pids > 0 && pids < Number(await readFile('/proc/sys/kernel/pid_max', 'utf8')), String(pids))
      assert.match(await read(`${cgroup}/cpu.weight`, `cpu/${cgroup}/cpu.shares`), /^(50|512)$/)
    },
  )

  it('bounds the CPU time a sandbox gets', gaps.unless('cpuLimit'), async () => {
    const { engine } = harness()
    await using box = await openBox(harness(), { limits: { ...LIMITS, cpuMillis: 100 } })
    // Measured by the kernel's clock, not by another sandbox's share, which depends on the load of the machine.
    const started = performance.now()
    const { cpuUsec: before } = await engine.usage(box.cell)
    await box.run('while :; do :; done', { timeoutMs: 2000 })
    const { cpuUsec: after } = await engine.usage(box.cell)
    const elapsedUsec = (performance.now() - started) * 1000
    // A tenth of the time, plus the rest of a few periods.
    assert.ok(after - before <= elapsedUsec / 10 + 100_000, `${after - before} of ${elapsedUsec}`)
  })

  it('makes a sandbox that burns all CPU time yield, until it rests', gaps.unless('wall'), async () => {
    await using box = await openBox(harness(), { limits: { ...LIMITS, cpuMillis: 0 } })
    const { cgroup } = harness().instance
    const parent = [`/sys/fs/cgroup/cpu/${cgroup}`, `/sys/fs/cgroup/${cgroup}`].find(existsSync)!
    const file = join(parent, box.cell.id, 'cpu.idle')
    // Kernels before 5.15 have no such groups.
    if (!existsSync(file)) return
    const isIdle = async () => (await readFile(file, 'utf8')).trim() === '1'
    const loops = `for i in $(seq ${2 * availableParallelism()}); do while :; do :; done & done; wait`
    box.run(loops, { timeoutMs: 600_000 }).catch(() => {})
    while (!(await isIdle())) await sleep(50)
    await box.run('kill -9 -1')
    while (await isIdle()) await sleep(50)
  })

  it('changes limits of a running sandbox', gaps.unless('memoryKill'), async () => {
    const { engine } = harness()
    await using box = await openBox(harness(), { limits: { ...LIMITS, memoryBytes: 48 * MIB } })
    const use = ['/usr/bin/python3', '-c', 'x = b"x" * (100 * 1024 * 1024); print(len(x))']
    assert.equal((await box.run(use)).signal, 9)
    await engine.limit(box.cell, { ...LIMITS, memoryBytes: 256 * MIB })
    assert.equal(await box.print(use), String(100 * MIB))
  })

  it('stops everything when frozen and goes on when thawed', gaps.unless('freeze'), async () => {
    const { engine } = harness()
    await using box = await openBox(harness())
    // It ends with the sandbox.
    box.run('while :; do :; done', { timeoutMs: 600_000 }).catch(() => {})
    await engine.freeze(box.cell)
    const { cpuUsec: frozenAt } = await engine.usage(box.cell)
    await sleep(300)
    assert.equal((await engine.usage(box.cell)).cpuUsec, frozenAt)
    await engine.freeze(box.cell)
    await engine.thaw(box.cell)
    assert.equal(await box.print('echo thawed'), 'thawed')
    while ((await engine.usage(box.cell)).cpuUsec <= frozenAt) await sleep(20)
  })

  it(
    'reclaims memory of a frozen sandbox, which continues after the thaw',
    gaps.unless('freeze'),
    async () => {
      const { engine } = harness()
      await using box = await openBox(harness())
      // Read twice, so that it counts as in use.
      await box.print('head -c 64M /dev/zero > /root/x; sync; cat /root/x /root/x > /dev/null')
      await engine.freeze(box.cell)
      const { memoryBytes: before } = await engine.usage(box.cell)
      await engine.reclaim(box.cell)
      const { memoryBytes: after } = await engine.usage(box.cell)
      assert.ok(after <= before, `${before} ${after}`)
      await engine.thaw(box.cell)
      assert.equal(await box.print('wc -c < /root/x'), String(64 * MIB))
    },
  )

  it(
    'changes limits of a frozen sandbox, which has them when it goes on',
    gaps.unless('freeze'),
    async () => {
      const { engine } = harness()
      await using box = await openBox(harness())
      await engine.freeze(box.cell)
      await engine.limit(box.cell, { ...LIMITS, memoryBytes: 300 * MIB })
      await engine.thaw(box.cell)
      const files = '/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes'
      assert.equal(await box.print(`cat ${files} 2> /dev/null; true`), String(300 * MIB))
    },
  )

  it('destroys a frozen sandbox', gaps.unless('freeze'), async () => {
    const { engine } = harness()
    const box = await openBox(harness())
    await engine.freeze(box.cell)
    await engine.destroy(box.cell)
    assert.equal(await engine.alive(box.cell), false)
    await assert.rejects(engine.freeze(box.cell), { code: 'sandbox_lost' })
    await box.link.close()
  })

  it('tells what a sandbox uses', async () => {
    const { engine } = harness()
    await using box = await openBox(harness())
    const before = await engine.usage(box.cell)
    await box.print('i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done')
    const usage = await engine.usage(box.cell)
    assert.ok(usage.memoryBytes > 0 && usage.memoryPeakBytes >= usage.memoryBytes)
    assert.ok(usage.cpuUsec > before.cpuUsec)
    assert.ok(usage.pids >= 1)
    assert.equal(usage.oomKills, 0)
  })
}
