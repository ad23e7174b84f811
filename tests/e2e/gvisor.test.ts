// A server whose sandboxes have their own kernel: processes continue after hibernation, in a restored checkpoint and in forks.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { globSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { probeOci } from '@islet/server/probe'
import type { IsletError, Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { needs } from '../support/programs.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

needs('curl', 'pgrep', 'pkill')

const lacking = (await probeOci()).filter(({ name, ok, optional }) => !ok && (!optional || name === 'runsc'))
const skip = lacking.map(({ detail }) => detail).join(' ')

/** Only its memory knows the secret. */
const COUNTER = `
import os, time
secret, n = os.urandom(8).hex(), 0
while True:
    n += 1
    open('new', 'w').write(f'{secret} {n}'); os.rename('new', 'count')
    time.sleep(0.05)
`

/** Has 200 MiB in memory. */
const FULL = `
import time
held = bytearray(b'x' * (200 << 20))
open('full', 'w').close()
time.sleep(1000)
`

/** Holds a connection to its store, and asks again when that has ended. */
const CONNECTED = `
import http.client, os, time, urllib.parse
url = urllib.parse.urlparse(os.environ['ISLET_STORE_URL'])
headers = {'Authorization': 'Bearer ' + os.environ['ISLET_STORE_TOKEN']}
while True:
    try:
        connection = http.client.HTTPConnection(url.netloc)
        while True:
            connection.request('GET', url.path, headers=headers)
            connection.getresponse().read()
            open('connected', 'w').close()
            time.sleep(0.05)
    except OSError:
        time.sleep(0.05)
    except http.client.HTTPException:
        time.sleep(0.05)
`

async function count(sandbox: Sandbox): Promise<{ secret: string; n: number }> {
  const [secret, n] = (await say(sandbox, 'cat count')).split(' ')
  return { secret: secret!, n: Number(n) }
}

/** The process runs, and is the same as before. */
async function goesOn(sandbox: Sandbox, before: { secret: string; n: number }): Promise<void> {
  const { secret, n } = await count(sandbox)
  assert.equal(secret, before.secret)
  assert.ok(n >= before.n, `${n} after ${before.n}`)
  await until(async () => (await count(sandbox)).n > n)
}

if (skip) {
  describe('isolation gvisor', () => it('runs', { skip }))
} else {
  const env: Record<string, string> = { ISLET_ISOLATION: 'gvisor' }
  const suite = await startSuite({ env })

  const start = async () => {
    const sandbox = await suite.create()
    await sandbox.exec.start(['python3', '-c', COUNTER])
    await until(async () => (await sandbox.exec.run('test -e count')).exitCode === 0)
    return { sandbox, before: await count(sandbox) }
  }

  it('gives large files back as they were sent', async () => {
    await using sandbox = await suite.create()
    const content = randomBytes(5_000_003)
    await sandbox.files.write('large', content)
    assert.ok(content.equals(await sandbox.files.readBytes('large')))
  })

  it('tells its isolation', async () => {
    await using sandbox = await suite.create()
    assert.equal((await sandbox.getInfo()).isolation, 'gvisor')
    assert.equal(await say(sandbox, 'hostname'), sandbox.id)
  })

  it('hibernates to disk and wakes with its processes, although the server was killed in between', async () => {
    const { sandbox, before } = await start()
    await sandbox.hibernate()
    await sandbox.wake()
    await goesOn(sandbox, before)
    const again = await count(sandbox)
    await sandbox.hibernate()
    await suite.server.kill()
    await suite.server.start()
    await goesOn(sandbox, again)
    await sandbox.kill()
  })

  it('is restored to a checkpoint with the processes of that time', async () => {
    const { sandbox, before } = await start()
    const checkpoint = await sandbox.createCheckpoint({ name: 'running' })
    await say(sandbox, 'pkill python3; rm count')
    await sandbox.restoreCheckpoint(checkpoint.id)
    await goesOn(sandbox, before)
    await sandbox.kill()
  })

  it('continues in forks and in the original, independently', async () => {
    const { sandbox, before } = await start()
    const copy = await sandbox.fork()
    assert.equal(await say(copy, 'hostname'), copy.id)
    await goesOn(copy, before)
    // A job that came with the memory keeps the copy awake too.
    const { reasons } = (await copy.getInfo()).awake!
    assert.deepEqual(
      reasons.map(({ kind }) => kind),
      ['job'],
    )
    await goesOn(sandbox, before)
    await sandbox.kill()
    await goesOn(copy, before)
    await copy.kill()
  })

  it('is saved while it is paused, and while a program inside is connected to its store', async () => {
    const sandbox = await suite.create({ storeAccess: true })
    await sandbox.exec.start(['python3', '-c', CONNECTED])
    await until(async () => (await sandbox.exec.run('test -e connected')).exitCode === 0)
    assert.equal((await sandbox.createCheckpoint({ name: 'connected' })).memory, true)
    await sandbox.exec.start(['python3', '-c', COUNTER])
    await until(async () => (await sandbox.exec.run('test -e count')).exitCode === 0)
    const before = await count(sandbox)
    await sandbox.pause()
    const checkpoint = await sandbox.createCheckpoint({ name: 'paused' })
    assert.equal(checkpoint.memory, true)
    assert.equal((await sandbox.getInfo()).status, 'paused')
    await goesOn(sandbox, before)
    await sandbox.restoreCheckpoint(checkpoint.id)
    await goesOn(sandbox, before)
    await sandbox.store.set('still', { value: 'there' })
    assert.equal(
      await say(
        sandbox,
        `curl -s -H "Authorization: Bearer $ISLET_STORE_TOKEN" $ISLET_STORE_URL/still | grep -c there`,
      ),
      '1',
    )
    await sandbox.kill()
  })

  it('ends when it uses more memory than it may, says why, and its files are there', async () => {
    await using sandbox = await suite.create({ resources: { memory: '128Mi' } })
    await sandbox.files.write('kept', 'yes')
    await assert.rejects(
      sandbox.exec.run(['python3', '-c', 'x = bytearray(600 << 20)']),
      (error: IsletError) => error.code === 'sandbox_lost',
    )
    await until(async () => (await sandbox.getInfo()).status === 'failed')
    assert.match((await sandbox.getInfo()).reason!, /memory/)
    assert.equal((await sandbox.events.list({ types: ['oom'] })).events.length, 1)
    const checkpoint = await sandbox.createCheckpoint('after')
    await sandbox.restoreCheckpoint(checkpoint.id)
    assert.equal(await say(sandbox, 'cat kept'), 'yes')
    await sandbox.deleteCheckpoint(checkpoint.id)
  })

  it('is refused less memory than its processes need, with a reason', async () => {
    await using sandbox = await suite.create()
    await sandbox.exec.spawn(['python3', '-c', FULL])
    await until(async () => (await sandbox.exec.run('test -e full')).exitCode === 0)
    const refused = (error: IsletError) => error.code === 'bad_request' && /need about/.test(error.message)
    await assert.rejects(sandbox.fork({ resources: { memory: '64Mi' } }), refused)
    await using fork = await sandbox.fork()
    assert.equal(await say(fork, 'pgrep -c python3'), '1')
  })

  it('is saved without memory where that cannot be saved, and says so', async () => {
    const { sandbox, before } = await start()
    // gVisor cannot save a file that is open and deleted.
    await sandbox.exec.start('exec 3<>deleted; rm deleted; touch begun; exec sleep 1000')
    await until(() => sandbox.files.exists('begun'))
    const checkpoint = await sandbox.createCheckpoint({ name: 'files' })
    assert.equal(checkpoint.memory, false)
    await goesOn(sandbox, before)
    await sandbox.hibernate()
    assert.equal((await sandbox.getInfo()).status, 'hibernated')
    await goesOn(sandbox, before)
    await sandbox.restoreCheckpoint(checkpoint.id)
    assert.equal((await count(sandbox)).secret, before.secret)
    assert.equal(await say(sandbox, 'pgrep -c python3 || true'), '0')
    await sandbox.kill()
  })

  it('starts over from files that contain a fifo in place of the placeholder', async () => {
    const { dataDir } = suite.server
    const sandbox = await suite.create()
    await say(sandbox, 'touch /tmp/mine')
    await sandbox.hibernate()
    // As an image, an imported file or the other isolation may have left it.
    const [mine] = globSync(join(dataDir, 'pool/layers/*/root/tmp/mine'))
    execFileSync('mkfifo', [join(dirname(mine!), '.islet-placeholder')])
    rmSync(join(dataDir, 'memory'), { recursive: true })
    const signal = AbortSignal.timeout(60_000)
    assert.equal((await sandbox.exec.run('echo here', { signal })).stdout, 'here\n')
    await sandbox.kill()
  })

  it('stays in memory when the disk may hold no more of it, and a checkpoint is made without', async () => {
    const { sandbox, before } = await start()
    const restart = async () => {
      await suite.server.kill()
      await suite.server.start()
    }
    env.ISLET_MEMORY_TOTAL = '1Mi'
    await restart()
    assert.equal((await sandbox.createCheckpoint({ name: 'files' })).memory, false)
    await sandbox.hibernate()
    assert.equal((await sandbox.getInfo()).status, 'hibernated')
    assert.deepEqual(globSync(join(suite.server.dataDir, 'memory/*/*')), [])
    await goesOn(sandbox, before)
    delete env.ISLET_MEMORY_TOTAL
    await restart()
    await sandbox.hibernate()
    assert.notDeepEqual(globSync(join(suite.server.dataDir, 'memory/*/*')), [])
    await goesOn(sandbox, before)
    await sandbox.kill()
  })

  // The last one: from here on the server has another.
  it('is not claimed by sandboxes that go on without it', async () => {
    const running = await suite.create()
    const sleeping = await suite.create()
    const checkpoint = await running.createCheckpoint({ name: 'with gvisor' })
    await sleeping.hibernate()
    env.ISLET_ISOLATION = 'namespace'
    await suite.server.kill()
    await suite.server.start()
    const made = await suite.islet.checkpoints.createSandbox(checkpoint.id)
    for (const sandbox of [running, sleeping, made]) {
      assert.equal((await sandbox.getInfo()).isolation, 'namespace')
      assert.doesNotMatch(await say(sandbox, 'cat /proc/version'), /gvisor/i)
      await sandbox.kill()
    }
  })
}
