import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { it } from 'node:test'
import { UIDS_PER_CELL } from '../../instance.ts'
import { FORBIDDEN, forbiddenProgram } from './forbidden.ts'
import type { Gaps } from './gaps.ts'
import { firstProcess, type Harness, openBox } from './harness.ts'

// In gVisor these belong to its own kernel. With cgroup v1 the directory itself is a tmpfs of the sandbox.
const KERNEL_WRITES = [
  'echo 1 > /proc/sys/net/ipv4/ip_forward',
  'cd /sys/fs/cgroup; [ -e cgroup.procs ] || cd memory; mkdir x',
  'cd /sys/fs/cgroup; [ -e cgroup.procs ] || cd memory; echo 1 > cgroup.procs',
]

export function wall(harness: () => Harness, gaps: Gaps): void {
  const walled = gaps.unless('wall')

  it('gives each sandbox host uids that no other has', walled, async () => {
    await using one = await openBox(harness())
    await using other = await openBox(harness())
    const bases = new Set<string>()
    for (const { cell } of [one, other]) {
      const { pid } = await firstProcess(harness(), cell.id)
      for (const map of ['uid_map', 'gid_map']) {
        const text = await readFile(`/proc/${pid}/${map}`, 'utf8')
        const [inside, outside, count] = text.trim().split(/\s+/)
        assert.deepEqual([inside, count], ['0', String(UIDS_PER_CELL)])
        assert.ok(Number(outside) >= harness().instance.uidStart)
        bases.add(outside!)
      }
    }
    assert.equal(bases.size, 2)
  })

  it('hides processes of the host and of other sandboxes', walled, async () => {
    await using one = await openBox(harness())
    await using other = await openBox(harness())
    await one.print('sleep 1000 > /dev/null 2>&1 &')
    const commands = await other.print('cat /proc/[0-9]*/cmdline | tr "\\0" " "')
    assert.doesNotMatch(commands, /sleep 1000|node|runc/)
    assert.equal(await other.print('cat /proc/1/cmdline | tr "\\0" " "'), '/.islet/guest')
  })

  it('hides files of other sandboxes', walled, async () => {
    await using one = await openBox(harness())
    await using other = await openBox(harness())
    await one.print('echo secret | tee /tmp/a /dev/shm/a /home/user/a /usr/a > /dev/null')
    await other.print('for f in /tmp/a /dev/shm/a /home/user/a /usr/a; do test ! -e $f || exit 1; done')
  })

  it('hides files of the host', walled, async () => {
    const { dataDir, runDir } = harness().instance
    await using box = await openBox(harness())
    for (const path of [dataDir, runDir, '/run/islet', '/root/.ssh', '/proc/1/root/work']) {
      assert.notEqual((await box.run(['ls', path])).code, 0, path)
    }
    const hashes = (await readFile('/etc/shadow', 'utf8')).split('\n').filter((line) => /:\$/.test(line))
    const inside = await box.print('cat /etc/shadow')
    for (const line of hashes) assert.ok(!inside.includes(line))
    assert.doesNotMatch(await box.print('cat /proc/self/mountinfo'), new RegExp(dataDir))
  })

  it(
    'lets only root inside reach the link, others enter its directory, and nobody change it',
    walled,
    async () => {
      await using box = await openBox(harness())
      const programs = ['guest', 'islet-signal', 'link.sock']
      const names = gaps.isolation === 'gvisor' ? programs : ['cpus', ...programs, 'meminfo']
      assert.deepEqual((await box.print('ls /.islet')).split('\n'), names)
      const dial = [
        '/usr/bin/python3',
        '-c',
        "import socket; socket.socket(socket.AF_UNIX).connect('/.islet/link.sock')",
      ]
      for (const attempt of ['ls /.islet', 'cat /.islet/link.sock', dial]) {
        const { code, output } = await box.run(attempt, { user: '1000' })
        assert.notEqual(code, 0, String(attempt))
        assert.match(output, /denied/i)
      }
      for (const attempt of [
        'touch /.islet/x',
        'chmod 777 /.islet',
        'chmod 666 /.islet/link.sock',
        'rm /.islet/link.sock',
        'mv /.islet/guest /.islet/g',
        'echo x > /.islet/guest',
        'mv /.islet /islet',
        'umount /.islet',
        'mount -o remount,rw /.islet',
      ]) {
        assert.notEqual((await box.run(attempt)).code, 0, attempt)
      }
    },
  )

  it('keeps other users of the machine away from its sockets', walled, async () => {
    await using box = await openBox(harness())
    const { linkDir } = box.cell
    const asNobody = (path: string) => spawnSync('/usr/bin/stat', [path], { uid: 65_534, gid: 65_534 }).status
    assert.equal(asNobody('/'), 0)
    for (const path of [linkDir, `${linkDir}/link.sock`, `${linkDir}/islet-signal`]) {
      assert.notEqual(asNobody(path), 0, path)
    }
  })

  it('refuses the system calls that reach past a sandbox', walled, async (test) => {
    if (process.arch !== 'x64') return test.skip('the numbers below are those of x86-64')
    await using box = await openBox(harness())
    for (const user of ['', '1000']) {
      const results = JSON.parse(await box.print(['/usr/bin/python3', '-c', forbiddenProgram()], { user }))
      assert.deepEqual(Object.keys(results), Object.keys(FORBIDDEN))
      for (const [name, result] of Object.entries(results)) {
        // Harmless in gVisor's own kernel; see gvisor/config.ts.
        if (gaps.isolation === 'gvisor' && /^(clone3|io_setup)$/.test(name)) continue
        assert.match(String(result), /^(EPERM|ENOSYS|EACCES)$/, `${name} as ${user || 'root'}: ${result}`)
      }
    }
  })

  it('refuses writes to the machine through /proc, /sys and devices', walled, async () => {
    await using box = await openBox(harness())
    for (const attempt of [
      'head -c 1 /proc/kcore | grep -q .',
      'dmesg',
      'echo h > /proc/sysrq-trigger',
      'echo x > /proc/sys/kernel/core_pattern',
      'echo 1 > /sys/kernel/uevent_helper',
      ...(gaps.isolation === 'gvisor' ? [] : KERNEL_WRITES),
      'mknod /tmp/disk b 254 0',
      'mknod /tmp/mem c 1 1',
      'mount -t tmpfs none /mnt',
      'unshare -U true',
      'unshare -n true',
      'nsenter -t 1 -m true',
      'ls /dev/sda /dev/vda /dev/mem /dev/kmsg 2> /dev/null | grep -q .',
    ]) {
      assert.notEqual((await box.run(attempt)).code, 0, attempt)
    }
  })

  it('owns no device of the machine', walled, async (test) => {
    if (gaps.isolation === 'gvisor') return test.skip('the devices are those of its own kernel')
    await using box = await openBox(harness())
    const owners = await box.print('cd /dev && stat -c %u null zero full tty random urandom')
    assert.deepEqual([...new Set(owners.split('\n'))], ['65534'])
  })

  it('lets set-user-id programs work inside', gaps.unless('setuid'), async () => {
    await using box = await openBox(harness())
    await box.print('cp /usr/bin/id /usr/local/bin/suid && chmod 4755 /usr/local/bin/suid')
    assert.match(await box.print('/usr/local/bin/suid', { user: '1000' }), /uid=1000.*euid=0\(root\)/)
  })

  it('has what programs expect: terminals, shared memory, a private writable /tmp', walled, async () => {
    await using box = await openBox(harness())
    const script = `
      import os, stat, multiprocessing.shared_memory as m
      master, slave = os.openpty(); print(os.ttyname(slave).startswith('/dev/pts/'))
      s = m.SharedMemory(create=True, size=4096); s.close(); s.unlink()
      print(oct(os.stat('/tmp').st_mode & 0o7777), oct(os.stat('/dev/shm').st_mode & 0o7777))
      for name in ('null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'fd', 'stdin'): os.lstat('/dev/' + name)
    `.replace(/^ {6}/gm, '')
    const printed = await box.print(['/usr/bin/python3', '-c', script], { user: '1000' })
    assert.deepEqual(printed.split('\n'), ['True', '0o1777 0o1777'])
  })
}
