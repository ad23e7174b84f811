// The wall: a sandbox must not reach files, processes, kernel interfaces or the network of the host and of neighbours.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { slotOf } from '../support/leftovers.ts'
import { needs } from '../support/programs.ts'
import { failsWith, refused, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

needs('curl')

const SECRET = `secret-of-the-host-${process.pid}`
const NAME = `islet-e2e-secret-${process.pid}`
const planted = ['/root', '/etc', '/var/lib', '/home', tmpdir()].map((directory) => join(directory, NAME))

const suite = await startSuite()
after(() => {
  for (const path of planted) rmSync(path, { force: true })
})
const [sandbox, neighbour] = await Promise.all([suite.create({ network: { enabled: true } }), suite.create()])
for (const path of [...planted, join(suite.server.dataDir, NAME)])
  writeFileSync(path, SECRET, { mode: 0o644 })
await neighbour.files.write(`/home/user/${NAME}`, SECRET)
await neighbour.files.write(`/tmp/${NAME}`, SECRET)

test('no file of the host or of a neighbour can be found', async () => {
  const search = `find / -xdev -name '${NAME}*' 2>/dev/null; find /proc/1/root/ -xdev -name '${NAME}*' 2>/dev/null; true`
  assert.equal(await say(sandbox, search, { user: 'root' }), '')
  for (const path of [...planted, join(suite.server.dataDir, NAME), join(suite.server.dataDir, 'key')]) {
    for (const root of ['', '/proc/1/root', '/proc/self/root', '/../../../..', '/.islet/../../..']) {
      await refused(sandbox, `cat ${root}${path}`, { user: 'root' })
    }
  }
})

test('the processes of the host and of a neighbour are not there', async () => {
  const running = await neighbour.exec.spawn(['sleep', '987654'])
  const listed = await say(sandbox, 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "', { user: 'root' })
  assert.doesNotMatch(listed, /987654/)
  assert.doesNotMatch(listed, /islet\.js|warden/)
  const host = (await neighbour.exec.get(running.id)).status
  assert.equal(host, 'running')
  await refused(sandbox, `kill -0 ${suite.server.pid}`, { user: 'root' })
})

test('the socket of the guest is out of reach for the user, and its directory cannot be changed by root', async () => {
  await refused(sandbox, 'ls /.islet')
  const connect = `import socket; socket.socket(socket.AF_UNIX).connect('/.islet/link.sock')`
  await refused(sandbox, `python3 -c "${connect}"`)
  for (const change of [
    'rm -f /.islet/link.sock',
    'touch /.islet/x',
    'mv /.islet /x',
    'umount /.islet',
    'ln -s / /.islet/y',
  ]) {
    await refused(sandbox, change, { user: 'root' })
  }
  assert.equal(await say(sandbox, 'echo still here'), 'still here')
})

test('root inside has only the capabilities it needs', async () => {
  const allowed = 0xa00405fbn
  for (const user of ['root', 'user']) {
    const status = await say(sandbox, 'grep -E "^Cap(Prm|Eff|Bnd|Inh|Amb)" /proc/self/status', { user })
    for (const [, mask] of status.matchAll(/\t([0-9a-f]+)/g)) {
      assert.equal(BigInt(`0x${mask}`) & ~allowed, 0n, status)
    }
  }
  assert.match(await say(sandbox, 'grep CapEff /proc/self/status'), /0000000000000000$/)
  assert.match(await say(sandbox, 'grep -E "^Seccomp:" /proc/self/status'), /2$/)
})

test('mounts, namespaces, modules, raw devices and reboots are refused to root', async () => {
  const attempts = [
    'mount -t tmpfs none /mnt',
    'mount -t proc none /mnt',
    'mount --bind / /mnt',
    'mount -t overlay overlay -o lowerdir=/,upperdir=/tmp,workdir=/mnt /mnt',
    'umount /proc/keys',
    'umount /',
    'unshare -m true',
    'unshare -U true',
    'unshare -n true',
    'unshare -r mount -t tmpfs none /mnt',
    'nsenter -t 1 -m true',
    'mknod /tmp/vda b 254 0',
    'mknod /tmp/mem c 1 1',
    'swapoff -a && swapon /dev/zero',
    'hostname stolen',
    'date -s 2001-01-01',
    'ip link add dummy0 type dummy',
    'dmesg',
    'chroot /proc/1/root/.. ls /root/.ssh',
  ]
  for (const attempt of attempts) await refused(sandbox, attempt, { user: 'root' })
})

test('dangerous system calls are refused to root', async () => {
  const numbers: Record<string, number> = {
    keyctl: 250,
    add_key: 248,
    request_key: 249,
    bpf: 321,
    perf_event_open: 298,
    userfaultfd: 323,
    kexec_load: 246,
    init_module: 175,
    finit_module: 313,
    delete_module: 176,
    mount: 165,
    umount2: 166,
    pivot_root: 155,
    setns: 308,
    unshare: 272,
    reboot: 169,
    swapon: 167,
    iopl: 172,
    ioperm: 173,
    open_by_handle_at: 304,
    move_mount: 429,
    open_tree: 428,
    fsopen: 430,
    fsmount: 432,
    mount_setattr: 442,
    io_uring_setup: 425,
    quotactl: 179,
    acct: 163,
    settimeofday: 164,
    clock_settime: 227,
    sethostname: 170,
    lookup_dcookie: 212,
    syslog: 103,
    vhangup: 153,
  }
  const script = `
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
out = {}
for name, number in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    out[name] = errno.errorcode.get(ctypes.get_errno(), str(result)) if result == -1 else 'worked'
print(json.dumps(out))`
  if (process.arch !== 'x64') return
  const answer = await say(sandbox, ['python3', '-c', script, JSON.stringify(numbers)], { user: 'root' })
  const results = JSON.parse(answer) as Record<string, string>
  const open = Object.entries(results).filter(([, result]) => result !== 'EPERM' && result !== 'ENOSYS')
  assert.deepEqual(open, [])
})

test('a vsock, packet or raw socket cannot be made', async () => {
  for (const family of ['40, 1', '17, 3', '2, 3', '38, 5', '31, 3']) {
    await refused(sandbox, `python3 -c 'import socket; socket.socket(${family})'`, { user: 'root' })
  }
})

test('the first process cannot be traced, read or stopped by the user', async () => {
  await refused(sandbox, 'cat /proc/1/mem')
  await refused(sandbox, 'cat /proc/1/environ')
  await refused(sandbox, 'ls -l /proc/1/fd')
  for (const signal of ['TERM', 'KILL', 'STOP', 'SEGV']) await refused(sandbox, `kill -${signal} 1`)
})

test('signals from root inside do not end or stop the first process', async () => {
  for (const signal of ['TERM', 'KILL', 'STOP', 'INT', 'HUP', 'QUIT', 'USR1', 'PIPE', 'TSTP']) {
    await sandbox.exec.run(`kill -${signal} 1`, { user: 'root' })
    assert.equal(await say(sandbox, 'echo alive'), 'alive', `after ${signal}`)
  }
  assert.equal((await sandbox.getInfo()).status, 'running')
})

test('kernel settings cannot be written', async () => {
  const paths = [
    '/proc/sys/kernel/core_pattern',
    '/proc/sys/kernel/hostname',
    '/proc/sys/vm/drop_caches',
    '/proc/sys/net/ipv4/ip_forward',
    '/proc/sysrq-trigger',
    '/proc/irq/default_smp_affinity',
    '/sys/kernel/uevent_helper',
    '/sys/power/state',
    '/sys/kernel/mm/transparent_hugepage/enabled',
  ]
  for (const path of paths) await refused(sandbox, `echo 1 > ${path}`, { user: 'root' })
  for (const path of ['/proc/kcore', '/proc/keys', '/proc/timer_list', '/sys/firmware/acpi']) {
    assert.equal(await say(sandbox, `head -c 64 ${path} 2>/dev/null | wc -c`, { user: 'root' }), '0', path)
  }
})

test('cgroups show nothing of the host, and cannot be changed', async () => {
  const write =
    'find /sys/fs/cgroup -type f | while read f; do (echo 1 > "$f") 2>/dev/null && echo "$f"; done; true'
  assert.equal(await say(sandbox, write, { user: 'root' }), '')
  const groups = 'for d in /sys/fs/cgroup/*/; do mkdir "$d/mine" 2>/dev/null && echo "$d"; done; true'
  assert.equal(await say(sandbox, groups, { user: 'root' }), '')
  assert.doesNotMatch(await say(sandbox, 'cat /proc/self/cgroup; find /sys/fs/cgroup'), /islet\d|shl-/)
})

test('a process is found in its own sandbox only', async () => {
  const { id } = await neighbour.exec.spawn(['sleep', '1000'])
  await failsWith(sandbox.exec.get(id), 'process_not_found')
  await failsWith(sandbox.exec.kill(id), 'process_not_found')
  await failsWith(sandbox.exec.output(id), 'process_not_found')
  assert.equal((await neighbour.exec.get(id)).status, 'running')
})

test('paths of the file API mean what they mean inside, through symlinks too', async () => {
  await say(
    sandbox,
    `ln -sfn / /tmp/root; ln -sfn /proc/1/root /tmp/proc-root; ln -sfn ../../../../../.. /tmp/up`,
  )
  for (const path of planted) {
    for (const prefix of [
      '',
      '/tmp/root',
      '/tmp/proc-root',
      '/tmp/up',
      '/../../..',
      '/proc/1/root',
      '/proc/1/cwd',
    ]) {
      assert.equal(await sandbox.files.exists(prefix + path), false, prefix + path)
      await assert.rejects(sandbox.files.read(prefix + path))
    }
  }
  await sandbox.files.write('/tmp/up/tmp/written-through-a-link', 'inside')
  assert.equal(await sandbox.files.read('/tmp/written-through-a-link'), 'inside')
  assert.equal(existsSync('/tmp/written-through-a-link'), false)
})

test('the server is out of reach, with a network and without', async () => {
  const port = new URL(suite.server.url).port
  const hosts = [
    '127.0.0.1',
    '$(ip route 2>/dev/null | sed -n "s/default via \\([0-9.]*\\).*/\\1/p")',
    ...hostAddresses(),
  ]
  for (const each of [sandbox, neighbour]) {
    for (const host of hosts) await refused(each, `curl -s -m 3 http://${host}:${port}/health`)
  }
})

function hostAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address)
}

test('a hostile archive writes only below its directory', async () => {
  const script = `
import tarfile, io
def entry(name, **fields):
    info = tarfile.TarInfo(name)
    data = fields.pop('data', b'')
    info.size = len(data)
    for key, value in fields.items(): setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))
for index, entries in enumerate([
    [('../escaped', dict(data=b'x'))],
    [('/tmp/absolute-escape', dict(data=b'x'))],
    [('link', dict(type=tarfile.SYMTYPE, linkname='/tmp')), ('link/through-link', dict(data=b'x'))],
    [('a/../../dotdot', dict(data=b'x'))],
    [('hard', dict(type=tarfile.LNKTYPE, linkname='/etc/passwd'))],
    [('hard2', dict(type=tarfile.LNKTYPE, linkname='../../../etc/shadow'))],
    [('device', dict(type=tarfile.BLKTYPE, devmajor=254, devminor=0))],
]):
    with tarfile.open('/tmp/hostile-%d.tar' % index, 'w') as tar:
        for name, fields in entries: entry(name, **fields)`
  await say(sandbox, ['python3', '-c', script])
  const target = '/workspace/into'
  for (let index = 0; index < 7; index++) {
    const archive = await sandbox.files.readBytes(`/tmp/hostile-${index}.tar`)
    await sandbox.files.writeArchive(target, archive).catch(() => {})
  }
  const outside = [
    '/workspace/escaped',
    '/escaped',
    '/tmp/absolute-escape',
    '/tmp/through-link',
    '/workspace/dotdot',
  ]
  for (const path of outside) assert.equal(await sandbox.files.exists(path), false, path)
  for (const path of outside) assert.equal(existsSync(path), false, path)
  assert.equal(await say(sandbox, 'find /workspace/into -type b -o -links +1 -type f | wc -l'), '0')
})

test('no runtime leaves anything on the machine where a second cgroup hierarchy is mounted', () => {
  const cells = readdirSync(`/run/islet/${slotOf(suite.server.dataDir)}/s`)
  assert.ok(cells.length >= 2)
  const look = 'mount --bind /sys/fs/cgroup /mnt && find /mnt/unified 2>/dev/null || true'
  const below = execFileSync('unshare', ['--mount', 'sh', '-c', look], { encoding: 'utf8' })
  assert.deepEqual(
    cells.filter((cell) => below.includes(cell)),
    [],
  )
})
