// Root inside tries everything that the kernel offers, by number and by name: each system call with several sets of arguments, each
// device, each file of /proc and /sys. What may succeed changes nothing outside of the sandbox.
import assert from 'node:assert/strict'
import { globSync, readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { say } from '../support/shell.ts'
import { eachIsolation } from './attack.ts'

const SYSCALLS = 480
const ARGUMENT_SETS = 4
const MAJORS = 256
const MINORS = [0, 1, 3, 8, 10, 200, 237] as const

/** Settings of this machine, as root outside sees them. The others change by themselves. */
const SETTINGS = ['kernel', 'vm', 'fs', 'net/core', 'net/ipv4']
const CHANGING =
  /random\/|ns_last_pid|dentry-state|inode-nr|inode-state|file-nr|aio-nr|quota|route\/|conf\/|neigh\/|hostname|seccomp|pty\/nr/

/** Many calls end or block their caller: a child makes them, and another continues after the call that ended it. */
const CALL_ALL = `
import ctypes, mmap, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
page = ctypes.create_string_buffer(b'/proc/1/root\\0' + b'\\xff' * 4083)
address = ctypes.addressof(page)
sets = [[0] * 6, [-1] * 6, [address] * 6, [1, address, 4096, address, 1, address]]
# Those that end or stop every process of the sandbox, this one too: kill, tkill, tgkill, pidfd_send_signal, rt_sigqueueinfo and its kin.
skipped = {62, 129, 200, 234, 297, 424}
# The number of sets of this system call that were begun.
begun = mmap.mmap(-1, 1)
def call(number):
    me = os.getpid()
    os.setsid()
    while begun[0] < len(sets):
        arguments = sets[begun[0]]
        begun[0] += 1
        libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
        # Some calls make another process.
        if os.getpid() != me: break
tried = 0
for number in range(${SYSCALLS}):
    begun[0] = len(sets) if number in skipped else 0
    while begun[0] < len(sets):
        child = os.fork()
        if child == 0:
            try: call(number)
            finally: os._exit(0)
        last, deadline = begun[0], time.monotonic() + 5
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            # Those that block do not end by themselves.
            if begun[0] != last: last, deadline = begun[0], time.monotonic() + 0.05
            elif time.monotonic() > deadline: os.kill(child, signal.SIGKILL)
            time.sleep(0.0005)
    tried += len(sets)
print('\\n' + str(tried))
`

const MAKE_DEVICES = `
import os, stat, sys
made = []
os.makedirs('/tmp/devices', exist_ok=True)
for kind in (stat.S_IFBLK, stat.S_IFCHR):
    for major in range(${MAJORS}):
        for minor in (${MINORS.join(', ')},):
            path = f'/tmp/devices/{kind}-{major}-{minor}'
            try:
                os.mknod(path, kind | 0o666, os.makedev(major, minor))
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
                made.append(f'{kind:o} {major}:{minor}')
            except OSError: pass
print(' '.join(made))
`

/** Tells every file that could be opened for writing, and writes back what stands there. */
const WRITE_KERNEL_FILES = `
import os, sys
tried, opened = 0, []
for top in ('/proc/sys', '/sys', '/proc/irq', '/proc/bus', '/proc/fs', '/proc/acpi', '/proc/scsi'):
    for folder, _, names in os.walk(top):
        for name in names:
            tried += 1
            path = os.path.join(folder, name)
            try: file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError: continue
            opened.append(path)
            try: os.write(file, b'1\\n')
            except OSError: pass
            os.close(file)
for name in ('sysrq-trigger', 'kcore', 'kmsg', 'mem', 'timer_list', 'sched_debug', 'latency_stats', 'mtrr'):
    tried += 1
    path = '/proc/' + name
    try: file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError: continue
    # What is masked is the null device.
    if os.stat(path).st_rdev != os.makedev(1, 3): opened.append(path)
    try: os.write(file, b'b\\n')
    except OSError: pass
print('\\n'.join([str(tried), *opened]))
`

await eachIsolation({ area: 'kernel' }, (target) => {
  const inside = async (script: string): Promise<string> => {
    await using sandbox = await target.suite.create({ resources: { memory: '512Mi', pids: 200 } })
    return await say(sandbox, ['python3', '-c', script], { user: 'root', timeout: '280s' })
  }

  test('no system call, whatever its arguments, is felt outside', async () => {
    const before = settings()
    const tries = SYSCALLS * ARGUMENT_SETS
    await target.attack('every system call', tries, async () => {
      // Some calls write to standard output.
      assert.equal((await inside(CALL_ALL)).split('\n').at(-1), String(tries))
    })
    assert.deepEqual(settings(), before)
  })

  test('no device of the machine can be made and opened', async () => {
    await target.attack('every device', 2 * MAJORS * MINORS.length, async () => {
      const made = await inside(MAKE_DEVICES)
      // gVisor's own kernel has devices of its own; none of them is the machine's.
      if (target.isolation === 'namespace') assert.equal(made, '')
      else assert.doesNotMatch(made, /^6\d* /m, 'no block device')
    })
  })

  test('no file of /proc or /sys changes a setting of the machine', async () => {
    const before = settings()
    await target.attack('every file of /proc/sys and /sys', 0, async () => {
      const [tried, ...opened] = (await inside(WRITE_KERNEL_FILES)).split('\n')
      assert.ok(Number(tried) > 100, `${tried} files`)
      if (target.isolation === 'namespace') assert.deepEqual(opened, [])
      return Number(tried)
    })
    assert.deepEqual(settings(), before)
  })
})

function settings(): Record<string, string> {
  const found: Record<string, string> = {}
  for (const top of SETTINGS)
    for (const path of globSync(`/proc/sys/${top}/**`)) if (!CHANGING.test(path)) found[path] = read(path)
  return found
}

function read(path: string): string {
  try {
    return statSync(path).isFile() ? readFileSync(path, 'utf8') : ''
  } catch {
    return ''
  }
}
