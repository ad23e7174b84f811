import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Sandbox } from 'islet'
import { baseImageForTests } from '../../packages/server/src/image/testing.ts'
import { needs } from '../support/programs.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

needs('getcap')

const { imagesDir } = await baseImageForTests()
const suite = await startSuite({ env: { ISLET_IMAGE_DIR: imagesDir } })

for (const runtime of ['host', 'base']) {
  describe(`a sandbox on ${runtime}`, () => {
    let sandbox: Sandbox
    let other: Sandbox
    before(async () => {
      ;[sandbox, other] = await Promise.all([suite.create({ runtime }), suite.create({ runtime })])
    })
    after(() => Promise.all([sandbox.kill(), other.kill()]))

    test('runs as user 1000 and becomes root with sudo', async () => {
      assert.equal(await say(sandbox, 'id -u; id -g; id -un'), '1000\n1000\nuser')
      assert.equal(await say(sandbox, 'sudo id -u'), '0')
      assert.equal(await say(sandbox, 'id -u', { user: 'root' }), '0')
      assert.equal(await say(sandbox, 'id -u; id -g', { user: '4321:1234' }), '4321\n1234')
    })

    test('has the environment of its user', async () => {
      assert.equal(await say(sandbox, 'echo $HOME $USER $LOGNAME; pwd'), '/home/user user user\n/home/user')
      assert.equal(await say(sandbox, 'echo $HOME $USER', { user: 'root' }), '/root root')
      const path = (await say(sandbox, 'echo $PATH')).split(':')
      for (const directory of ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin'])
        assert.ok(path.includes(directory))
      const names = (await say(sandbox, 'env -0')).split('\0').map((entry) => entry.split('=')[0])
      const secrets = names.filter((name) => name?.startsWith('ISLET_') && name !== 'ISLET_SANDBOX_ID')
      assert.deepEqual(secrets, [], 'nothing of the server is in it')
    })

    test('has a name and a machine id of its own', async () => {
      const look =
        'hostname; cat /etc/hostname; uname -n; getent hosts $(hostname) >/dev/null && cat /etc/machine-id'
      const [first, second] = await Promise.all([say(sandbox, look), say(other, look)])
      const [hostname, file, node, machineId] = first.split('\n')
      assert.deepEqual([hostname, file, node], [sandbox.id, sandbox.id, sandbox.id])
      assert.match(machineId!, /^[0-9a-f]{32}$/)
      assert.notEqual(machineId, second.split('\n')[3])
    })

    test('has a range of host uids that no other sandbox has', async () => {
      const maps = await Promise.all(
        [sandbox, other].flatMap((each) => [
          say(each, 'cat /proc/self/uid_map'),
          say(each, 'cat /proc/self/gid_map'),
        ]),
      )
      const ranges = maps.map((map) => map.trim().split(/\s+/).map(Number))
      for (const [inside, outside, count] of ranges) {
        assert.equal(inside, 0)
        assert.ok(outside! >= 65_536, 'no uid of the host')
        assert.equal(count, 65_536)
      }
      assert.ok(Math.abs(ranges[0]![1]! - ranges[2]![1]!) >= 65_536, 'the ranges do not overlap')
    })

    test('lets its root give files away and set the setuid bit', async () => {
      await say(sandbox, 'cd /tmp && touch mine && chown 12:34 mine && chmod 6755 mine', { user: 'root' })
      assert.equal(await say(sandbox, 'stat -c "%u %g %a" /tmp/mine'), '12 34 6755')
      await say(sandbox, 'cp /usr/bin/id /tmp/id-as-root && chmod u+s /tmp/id-as-root', { user: 'root' })
      assert.equal(await say(sandbox, '/tmp/id-as-root -u'), '0')
      assert.equal(await say(sandbox, 'chown root /tmp/id-as-root 2>/dev/null || echo refused'), 'refused')
    })

    test('has the directories that people write to', async () => {
      await say(sandbox, 'touch /workspace/a ~/a /tmp/a /dev/shm/a && rm /workspace/a ~/a /tmp/a /dev/shm/a')
      assert.equal(await say(sandbox, 'stat -c %a /tmp /dev/shm'), '1777\n1777')
      assert.equal(await say(sandbox, 'touch /usr/a /etc/a 2>/dev/null || echo refused'), 'refused')
      await say(sandbox, 'sudo touch /usr/a /etc/a && sudo rm /usr/a /etc/a')
    })

    test('sees its own processes only', async () => {
      const seen = await say(sandbox, 'for p in /proc/[0-9]*; do cat $p/comm 2>/dev/null; done | sort -u')
      const strangers = seen.split('\n').filter((name) => !['guest', 'sh', 'cat', 'sort'].includes(name))
      assert.deepEqual(strangers, [])
      assert.equal(await say(sandbox, 'cat /proc/1/comm'), 'guest')
    })

    test('has the usual devices', async () => {
      assert.equal(await say(sandbox, 'head -c 3 /dev/zero | wc -c; head -c 9 /dev/urandom | wc -c'), '3\n9')
      assert.equal(await say(sandbox, 'echo x > /dev/null; test -e /dev/fd/0 && echo ok'), 'ok')
      assert.equal(await say(sandbox, 'echo x > /dev/full 2>/dev/null || echo full'), 'full')
      assert.equal(await say(sandbox, 'echo y > /dev/stdout', { user: 'root' }), 'y')
    })

    test('lets its user print through /dev/stdout and /dev/stderr', async () => {
      const result = await sandbox.exec.run('echo out > /dev/stdout; echo err | tee /dev/stderr > /dev/null')
      assert.deepEqual([result.stdout, result.stderr], ['out\n', 'err\n'])
    })
  })
}

test('its user can ping, on the base and where the machine has a ping', async () => {
  for (const runtime of ['base', 'host']) {
    await using sandbox = await suite.create({ runtime })
    if (runtime === 'host' && (await sandbox.exec.run('which ping')).exitCode !== 0) continue
    assert.match(await say(sandbox, 'ping -c 1 127.0.0.1'), /1 received/)
    assert.equal(await say(sandbox, 'getcap -r /usr/bin /usr/sbin'), '', 'programs that could not be started')
  }
})

test('a sandbox may name another user and directory', async () => {
  await using sandbox = await suite.create({ user: 'root', workdir: '/srv/deep/inside' })
  assert.equal(await say(sandbox, 'id -u; pwd'), '0\n/srv/deep/inside')
  const info = await sandbox.getInfo()
  assert.deepEqual([info.user, info.workdir], ['root', '/srv/deep/inside'])
})
