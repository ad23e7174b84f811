import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Fields, Guest, isRoot, until } from './harness.ts'
import { refusal } from './refusal.ts'

const needsRoot = { skip: isRoot ? false : 'needs root' }

describe('users', needsRoot, () => {
  let guest: Guest
  before(async () => {
    // Its own /etc/passwd and /etc/group, in a mount namespace that goes with it.
    const script = `
      printf 'root:x:0:0::/root:/bin/sh\\nada:x:1234:1300::/home/ada:/bin/sh\\n1111:x:2222:2222::/:/bin/sh\\n' > $1/passwd
      printf 'root:x:0:\\nada:x:1300:\\nwheel:x:1400:bob,ada\\nvideo:x:1500:ada\\nempty:x:1600:\\nlate:x:1700:adam,ada' > $1/group
      mount --bind $1/passwd /etc/passwd && mount --bind $1/group /etc/group && shift && exec "$@"`
    const dir = (await import('node:fs')).mkdtempSync('/tmp/guest-test-etc-')
    guest = await Guest.start([
      'unshare',
      '--mount',
      '--propagation',
      'private',
      'sh',
      '-c',
      script,
      'sh',
      dir,
    ])
    etc = dir
  })
  let etc: string
  after(async () => {
    await guest.stop()
    ;(await import('node:fs')).rmSync(etc, { recursive: true })
  })

  const id = async (user: string) =>
    (await guest.sh('echo $(id -u) $(id -g) $(id -G)', { user })).stdout.toString().trim()

  test('a user is looked up in the sandbox with all its groups', async () => {
    assert.equal(await id('ada'), '1234 1300 1300 1400 1500 1700')
    assert.equal(await id('1234'), '1234 1300 1300 1400 1500 1700')
    assert.equal(await id('root'), '0 0 0')
    assert.equal(await id(''), '0 0 0')
  })

  test('an explicit group is the only one', async () => {
    assert.equal(await id('ada:video'), '1234 1500 1500')
    assert.equal(await id('1234:77'), '1234 77 77')
  })

  test('a name goes before a number, and unknown numbers are taken as they are', async () => {
    assert.equal(await id('1111'), '2222 2222 2222')
    assert.equal(await id('4321'), '4321 4321 4321')
    assert.equal((await refusal(guest.spawn(['true'], { user: '4294967295' }))).kind, 'NO_USER')
  })

  test('a user cannot look into what root may', async () => {
    const { code } = await guest.sh('cat /etc/shadow', { user: 'ada' })
    assert.notEqual(code, 0)
  })

  test('what every login sets comes from the user, unless it is given', async () => {
    const env = async (fields: Fields) =>
      (await guest.run(['/usr/bin/env'], fields)).stdout.toString().trim().split('\n').sort()
    assert.deepEqual(await env({ user: 'ada', env: ['A=1'] }), [
      'A=1',
      'HOME=/home/ada',
      'LOGNAME=ada',
      'SHELL=/bin/sh',
      'USER=ada',
    ])
    assert.deepEqual(await env({ user: 'ada', env: ['HOME=/x'] }), [
      'HOME=/x',
      'LOGNAME=ada',
      'SHELL=/bin/sh',
      'USER=ada',
    ])
    assert.deepEqual(await env({ user: '4321', env: ['A=1'] }), ['A=1'])
  })

  test('a new owner is for new files only', async () => {
    const owners = async (fields: Fields) => {
      const [entry] = (await guest.writeFile(guest.path('new', 'file'), 'x', { parents: 1, ...fields })).entry
      return [entry.uid, entry.gid]
    }
    assert.deepEqual(await owners({ newOwner: 'ada' }), [1234, 1300])
    assert.deepEqual(await owners({ newOwner: 'root' }), [1234, 1300])
    assert.deepEqual(await owners({ owner: '7:8', newOwner: 'root' }), [7, 8])
    assert.equal((await guest.ask('STAT', { path: guest.path('new') })).entry[0].uid, 1234)
  })

  test('an owner is looked up the same way', async () => {
    const { entry } = await guest.writeFile(guest.path('hers'), 'x', { owner: 'ada' })
    assert.deepEqual([entry[0].uid, entry[0].gid], [1234, 1300])
  })
})

describe('a guest without privileges', needsRoot, () => {
  test('says so and refuses to become somebody else', async (t) => {
    const guest = await Guest.start([
      'sh',
      '-c',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own
      'chmod 777 "${2%/*}" "$2"; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" "$@"',
    ])
    t.after(() => guest.stop())
    assert.equal(guest.hello.privileged, 0)
    const error = await refusal(guest.spawn(['true'], { user: 'root' }))
    assert.deepEqual([error.kind, error.stage], ['DENIED', 'user'])
    assert.equal((await guest.sh('id -u', { user: '65534' })).stdout.toString(), '65534\n')
  })
})

describe('a guest that is PID 1', needsRoot, () => {
  let guest: Guest
  before(async () => {
    guest = await Guest.start(['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'])
  })
  after(() => guest.kill())

  test('kills all but itself and forgets them', async () => {
    const streams = await Promise.all(
      Array.from({ length: 20 }, () => guest.spawn(['sh', '-c', 'setsid sleep 1000 & sleep 1000'])),
    )
    await guest.ask('KILL_ALL')
    assert.deepEqual((await guest.ask('PROCESSES')).process, [])
    const { stdout } = await guest.sh('ls /proc | grep -c "^[0-9]"')
    assert.ok(Number(stdout) <= 5, `only the guest and what looks: ${stdout}`)
    assert.deepEqual(
      streams.flatMap((stream) => stream.queue).map((message) => message.name),
      [],
    )
    await guest.ask('KILL_ALL')
  })

  test('reaps orphans and is not ended by signals', async () => {
    await guest.sh(
      'kill -TERM 1; kill -INT 1; kill -KILL 1; i=0; while [ $i -lt 500 ]; do (: &); i=$((i+1)); done',
    )
    let zombies = 1
    await until('no zombie is left', async () => {
      zombies = Number((await guest.sh('cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z "')).stdout)
      return zombies === 0
    })
    assert.equal(await guest.ping('alive'), 'alive')
  })
})
