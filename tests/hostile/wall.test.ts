// Attacks from inside on the wall: on PID 1, on resources shared with other sandboxes, on visible parts of the machine.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Sandbox } from 'islet'
import { eachIsolation } from './attack.ts'

// Prints the resources of PID 1 that it could change.
const PRLIMIT = `
import resource
for each in [name for name in dir(resource) if name.startswith('RLIMIT_')]:
  try:
    resource.prlimit(1, getattr(resource, each), (0, 0))
    print(each)
  except (OSError, ValueError): pass
`

// Prints those of its arguments that it could open of PID 1.
const LOOK = `
import os, sys
for path in sys.argv[1:]:
  try:
    os.open('/proc/1/' + path, os.O_RDONLY)
    print(path)
  except OSError: pass
`

const TRACE = `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PIDFD_OPEN, PIDFD_GETFD = 0x4206, 434, 438
fd = libc.syscall(PIDFD_OPEN, 1, 0)
took = fd >= 0 and libc.syscall(PIDFD_GETFD, fd, 3, 0) >= 0
print('reached' if libc.ptrace(PTRACE_SEIZE, 1, 0, 0) == 0 or took else 'refused')
`

// Watches and locks its arguments until /tmp/over is there, then writes what it saw to /tmp/seen.
const WATCH = `
import ctypes, fcntl, os, select, sys, time
libc = ctypes.CDLL(None, use_errno=True)
watches = libc.inotify_init1(os.O_NONBLOCK)
held = []
IN_ALL = 0xfff
for path in sys.argv[1:]:
  libc.inotify_add_watch(watches, path.encode(), IN_ALL)
  try:
    held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
  except OSError: pass
# What it did itself.
while select.select([watches], [], [], 0)[0]: os.read(watches, 65536)
os.mkdir('/tmp/watching')
while not os.path.exists('/tmp/over'): time.sleep(0.01)
with open('/tmp/saw', 'w') as saw:
  if select.select([watches], [], [], 0)[0]: saw.write(repr(os.read(watches, 65536)))
os.rename('/tmp/saw', '/tmp/seen')
`

// Prints those of its arguments that somebody else has locked.
const TOUCH = `
import fcntl, os, sys
for path in sys.argv[1:]:
  try: fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
  except OSError: continue
  os.read(fd, 1) if path != '/dev/tty' else None
  try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError: print(path)
  except OSError: pass
  os.close(fd)
`

const TELLS = `
import glob
files = ['cmdline', 'diskstats', 'partitions', 'modules', 'kallsyms']
for path in ['/proc/' + name for name in files] + glob.glob('/sys/block/*/loop/backing_file') + glob.glob('/sys/devices/virtual/*/*/loop/backing_file') + glob.glob('/sys/fs/btrfs/*') + glob.glob('/proc/fs/*') + glob.glob('/sys/devices/virtual/dmi/id/*') + glob.glob('/sys/module/*'):
  try: text = open(path).read()
  except IsADirectoryError: text = 'directory'
  except OSError: text = ''
  if text: print(path)
`

await eachIsolation({ area: 'wall' }, (target) => {
  test('all that a command started ends with it, however it left its session', async () => {
    const sandbox = await target.suite.create()
    const kept = await sandbox.exec.spawn('sleep 1009')
    // Nobody becomes root by sudo in gVisor.
    const sudo = target.isolation === 'namespace' ? 'sudo' : ''
    const leave = `setsid sleep 1000 & (setsid setsid sh -c 'sleep 1001; true' &); (nohup ${sudo} setsid sleep 1002 >/dev/null 2>&1 </dev/null &);`
    await target.attack('a command leaves its session before its timeout', 3, async () => {
      const result = await sandbox.exec.run(`${leave} env -i setsid sleep 1003 & sleep 1004`, {
        timeout: 1000,
      })
      assert.equal(result.timedOut, true)
      assert.deepEqual(await sleepers(sandbox), ['1009'])
      const killed = await sandbox.exec.spawn(`${leave} sleep 1005`)
      await until(async () => (await sleepers(sandbox)).length === 5)
      await sandbox.exec.kill(killed.id)
      await until(async () => (await sandbox.exec.get(killed.id)).status !== 'running')
      assert.deepEqual(await sleepers(sandbox), ['1009'])
    })
    assert.equal((await sandbox.exec.get(kept.id)).status, 'running')
    // A process that outlives a command that ended by itself is its daemon.
    await sandbox.exec.run('setsid sleep 1006 >/dev/null 2>&1 &')
    await until(async () => (await sleepers(sandbox)).includes('1006'))
  })

  test('root inside cannot reach into PID 1', async () => {
    const sandbox = await target.suite.create()
    const python = (...code: string[]) =>
      sandbox.exec.run(['python3', '-c', ...code], { user: 'root' }).then(({ stdout }) => stdout.trim())
    const paths = ['mem', 'root/etc', 'cwd/etc', 'exe', 'fd/4']
    // gVisor shows these of every process to its user; its guest has no secret in them.
    if (target.isolation === 'namespace') paths.push('environ', 'maps', 'fd/0')
    await target.attack('prlimit, ptrace, mem and fds of PID 1', 20, async () => {
      assert.equal(await python(PRLIMIT), '')
      assert.equal(await python(LOOK, ...paths), '')
      assert.equal(await python(TRACE), 'refused')
    })
    assert.equal((await sandbox.exec.run('echo on')).stdout, 'on\n')
  })

  test("root inside reads of the machine's /usr what anybody on the machine may", async () => {
    const directory = mkdtempSync('/usr/local/lib/islet-test-')
    after(() => rmSync(directory, { recursive: true }))
    const put = (name: string, mode: number) => {
      writeFileSync(join(directory, name), name)
      chmodSync(join(directory, name), mode)
    }
    chmodSync(directory, 0o755)
    put('public', 0o644)
    put('private', 0o600)
    put('later', 0o644)
    const sandbox = await target.suite.create()
    const root = (command: string) => sandbox.exec.run(command, { user: 'root' })
    assert.equal((await root(`cat ${directory}/public ${directory}/later`)).stdout, 'publiclater')
    chmodSync(join(directory, 'later'), 0o640)
    put('new', 0o600)
    mkdirSync(join(directory, 'closed'), { mode: 0o700 })
    put('closed/inside', 0o644)
    await target.attack('private files of the machine below /usr', 6, async () => {
      // gVisor keeps open what it has read once.
      for (const name of [
        'private',
        'new',
        'closed/inside',
        ...(target.isolation === 'namespace' ? ['later'] : []),
      ]) {
        const { stdout } = await root(
          `cat ${directory}/${name}; cp ${directory}/${name} /tmp/copy && cat /tmp/copy`,
        )
        assert.equal(stdout, '', name)
      }
      assert.equal((await root(`chmod 777 ${directory}/private; cat ${directory}/private`)).stdout, '')
      assert.equal((await root('ls -A /usr/local/etc; cat /usr/local/etc/*')).stdout, '')
    })
    // Its own it may write and read as it likes.
    const own = await root(
      `rm ${directory}/private && umask 077 && echo own > ${directory}/private && cat ${directory}/private`,
    )
    assert.equal(own.stdout, 'own\n')
    if (target.isolation === 'namespace') assert.equal((await sandbox.exec.run('sudo id -u')).stdout, '0\n')
  })

  test('a watch or a lock of one sandbox does not reach another', async () => {
    const [watcher, other] = await Promise.all([target.suite.create(), target.suite.create()])
    const paths = [
      '/dev/null',
      '/dev/zero',
      '/dev/urandom',
      '/dev/tty',
      '/usr/bin/env',
      '/etc/os-release',
      '/.islet/guest',
      '/.islet/islet-signal',
    ]
    await target.attack('inotify and flock on what sandboxes have in common', paths.length, async () => {
      await watcher.exec.spawn(['python3', '-c', WATCH, ...paths], { user: 'root' })
      // Not by commands: they begin by opening /dev/null.
      const has = (path: string) => watcher.files.exists(path)
      await until(() => has('/tmp/watching'))
      const { stdout } = await other.exec.run(['python3', '-c', TOUCH, ...paths], { user: 'root' })
      assert.equal(stdout, '')
      assert.match((await other.exec.run('/.islet/guest --version')).stdout, /^guest \d/)
      await watcher.files.makeDir('/tmp/over')
      await until(() => has('/tmp/seen'))
      assert.equal(await watcher.files.read('/tmp/seen'), '')
    })
  })

  const skip = target.isolation === 'gvisor' && 'What is there is of its own kernel.'
  test("what tells of the machine's disks, boot and modules is empty", { skip }, async () => {
    const sandbox = await target.suite.create()
    const { stdout } = await sandbox.exec.run(['python3', '-c', TELLS], { user: 'root' })
    assert.equal(stdout, '')
  })
})

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 20_000; !(await isSo()); ) assert.ok(Date.now() < deadline)
}

/** The seconds of all that sleeps in the sandbox. */
async function sleepers(sandbox: Sandbox): Promise<string[]> {
  const { stdout } = await sandbox.exec.run(
    'for each in /proc/[0-9]*/cmdline; do tr "\\0" " " < $each 2>/dev/null; echo; done',
    { user: 'root' },
  )
  return [...stdout.matchAll(/^sleep (\d+) $/gm)].map(([, seconds]) => seconds!)
}
