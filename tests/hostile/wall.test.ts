// What code inside tries on the wall around it: on PID 1, on what it shares with other sandboxes, on what it sees of the machine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
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

// Prints what it could open of PID 1.
const LOOK = `
import os
for path in ['mem', 'environ', 'maps', 'fd/0', 'fd/4', 'root/etc', 'cwd/etc', 'exe']:
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
done = [libc.ptrace(PTRACE_SEIZE, 1, 0, 0), fd >= 0 and libc.syscall(PIDFD_GETFD, fd, 3, 0)]
print('reached' if 0 in done or any(each is not False and each >= 0 for each in done) else 'refused')
`

await eachIsolation({ area: 'wall' }, ({ suite, attack }) => {
  test('all that a command started ends with it, however it left its session', async () => {
    const sandbox = await suite.create()
    const kept = await sandbox.exec.spawn('sleep 1009')
    const escape =
      "setsid sleep 1000 & (setsid setsid sh -c 'sleep 1001; true' &); (nohup sudo setsid sleep 1002 >/dev/null 2>&1 </dev/null &);"
    await attack('a command leaves its session before its timeout', 3, async () => {
      const result = await sandbox.exec.run(`${escape} env -i setsid sleep 1003 & sleep 1004`, {
        timeout: 1000,
      })
      assert.equal(result.timedOut, true)
      assert.deepEqual(await sleepers(sandbox), ['1009'])
      const killed = await sandbox.exec.spawn(`${escape} sleep 1005`)
      while ((await sleepers(sandbox)).length < 5) {}
      await sandbox.exec.kill(killed.id)
      while ((await sandbox.exec.get(killed.id)).status === 'running') {}
      assert.deepEqual(await sleepers(sandbox), ['1009'])
    })
    assert.equal((await sandbox.exec.get(kept.id)).status, 'running')
    // What a command that ends by itself leaves behind is its daemon.
    await sandbox.exec.run('setsid sleep 1006 >/dev/null 2>&1 &')
    while (!(await sleepers(sandbox)).includes('1006')) {}
  })

  test('root inside cannot reach into PID 1', async () => {
    const sandbox = await suite.create()
    const python = (code: string) =>
      sandbox.exec.run(['python3', '-c', code], { user: 'root' }).then(({ stdout }) => stdout.trim())
    await attack('prlimit, ptrace, mem and fds of PID 1', 20, async () => {
      assert.equal(await python(PRLIMIT), '')
      assert.equal(await python(LOOK), '')
      assert.equal(await python(TRACE), 'refused')
    })
    assert.equal((await sandbox.exec.run('echo on')).stdout, 'on\n')
  })
})

/** The seconds of all that sleeps in the sandbox. */
async function sleepers(sandbox: Sandbox): Promise<string[]> {
  const { stdout } = await sandbox.exec.run(
    'for each in /proc/[0-9]*/cmdline; do tr "\\0" " " < $each 2>/dev/null; echo; done',
    { user: 'root' },
  )
  return [...stdout.matchAll(/^sleep (\d+) $/gm)].map(([, seconds]) => seconds!)
}
