// A sandbox with a changed /etc can be forked, restored and woken like any other.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachIsolation } from './attack.ts'

/** As root; each leaves a shell and `cat` to run. */
const ODDITIES: Record<string, string> = {
  'fifos in place of files': 'cd /etc && rm hosts hostname resolv.conf && mkfifo hosts hostname resolv.conf',
  'sockets in place of files': `cd /etc && rm hosts resolv.conf && python3 -c "
import socket
for name in ['hosts', 'resolv.conf']: socket.socket(socket.AF_UNIX).bind(name)"`,
  'links that lead nowhere, to a fifo and round in circles':
    'cd /etc && mkfifo /tmp/fifo && ln -sf /nowhere/at/all hosts && ln -sf /tmp/fifo resolv.conf && rm hostname && ln -s hostname hostname',
  'directories in place of files': 'cd /etc && rm hosts machine-id && mkdir -p hosts/full machine-id',
  'fifos in place of accounts': 'cd /etc && rm passwd group && mkfifo passwd group',
  'a link in place of /etc': 'mv /etc /tmp/etc && ln -s /tmp/etc /etc',
  'a link round in circles in place of /etc': 'rm -rf /etc; ln -s etc /etc',
  'a file in place of /etc': 'rm -rf /etc; echo etc > /etc',
  'a fifo in place of /etc': 'rm -rf /etc; mkfifo /etc',
  'no /etc': 'rm -rf /etc',
}

await eachIsolation({ area: 'etc' }, (target) => {
  // With gVisor the guest always writes the files, so half of them show as much.
  const oddities = Object.entries(ODDITIES).filter((_, n) => target.isolation === 'namespace' || n % 2 === 0)
  for (const [name, make] of oddities) {
    test(`${name}: it is forked, restored and started again from its files`, async () => {
      const sandbox = await target.suite.create({ user: '0:0' })
      const made = await sandbox.exec.run(make)
      assert.equal(made.exitCode, 0, made.stderr)
      await sandbox.exec.run('echo kept > /home/mark')
      const mark = async (one: typeof sandbox) => (await one.exec.run('cat /home/mark')).stdout
      await target.attack(name, 3, async () => {
        const fork = await sandbox.fork()
        assert.equal(await mark(fork), 'kept\n')
        await fork.kill()
        const checkpoint = await sandbox.createCheckpoint('odd')
        await sandbox.exec.run('rm /home/mark')
        await sandbox.restoreCheckpoint(checkpoint.id)
        assert.equal(await mark(sandbox), 'kept\n')
      })
      await sandbox.kill()
    })
  }
})
