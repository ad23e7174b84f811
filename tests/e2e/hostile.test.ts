// Programs that misbehave hurt their own sandbox only: a neighbour is asked all the time, and always answers.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode, type Sandbox } from 'islet'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const MIB = 1024 * 1024
const neighbour = await suite.create()
const watch = watchNeighbour()
after(() => watch.stop())

test('a fork bomb ends with its sandbox', async () => {
  await using sandbox = await suite.create({ resources: { pids: 200, memory: '256Mi', cpu: 1 } })
  const bomb = ['bash', '-c', 'bomb() { bomb | bomb & }; bomb; sleep 2']
  await sandbox.exec
    .run(bomb, { timeout: '4s' })
    .catch((error) => assert.ok(hasCode(error, 'limit_exceeded')))
  await watch.answersAgain()
  const usage = await sandbox.usage()
  assert.ok(usage.pids <= 201, `${usage.pids} processes`)
  // At its limit a command may not start, but the answer is clear and comes.
  const outcome = await sandbox.exec.run(['true'], { timeout: '10s' }).catch((error) => error)
  if (outcome instanceof Error) assert.ok(hasCode(outcome, 'limit_exceeded'), String(outcome))
})

test('a memory hog is killed, is told apart, and its sandbox lives on', async () => {
  await using sandbox = await suite.create({ resources: { memory: '64Mi' } })
  const hog = await sandbox.exec.run(['python3', '-c', 'a = []\nwhile True: a.append(bytearray(1 << 20))'])
  assert.deepEqual([hog.oom, hog.signal, hog.exitCode, hog.timedOut], [true, 'SIGKILL', 137, false])
  assert.equal(await say(sandbox, 'echo lives on'), 'lives on')
  const fine = await sandbox.exec.run('exit 3')
  assert.deepEqual([fine.oom, fine.exitCode], [false, 3])
  const shared = await sandbox.exec.run('head -c 200000000 /dev/zero > /dev/shm/full')
  assert.notEqual(shared.exitCode, 0)
  await sandbox.exec.run('rm -f /dev/shm/full')
  assert.equal(await say(sandbox, 'echo lives on'), 'lives on')
})

test('a full disk is said clearly, and a removal frees it', async (context) => {
  const { storage } = await suite.islet.info()
  if (!storage.diskLimit) return context.skip('this storage has no limits')
  await using sandbox = await suite.create({ resources: { disk: '32Mi' } })
  const filled = await sandbox.exec.run('head -c 100000000 /dev/urandom > ~/filler')
  assert.match(filled.stderr, /No space left|quota/i)
  await failsWith(sandbox.files.write('more', Buffer.alloc(10 * MIB, 7)), 'sandbox_disk_full')
  assert.deepEqual(
    (await sandbox.files.list()).map(({ name }) => name).filter((name) => name.includes('more')),
    [],
  )
  assert.equal(await say(sandbox, 'echo still answers'), 'still answers')
  await sandbox.files.remove('filler')
  await say(sandbox, 'sync')
  await sandbox.files.write('small', 'fits')
  assert.equal(await sandbox.files.read('small'), 'fits')
})

test('an endless printer is cut at the bound and ended by its timeout', async () => {
  await using sandbox = await suite.create()
  const result = await sandbox.exec.run('yes', { maxOutputBytes: 100_000, timeout: '1s' })
  assert.deepEqual([result.timedOut, result.exitCode, result.truncated], [true, 124, true])
  assert.equal(result.stdout.length, 100_000)
  const both = await sandbox.exec.run('yes >&2 & yes', { maxOutputBytes: 5000, timeout: '500ms' })
  assert.equal(both.stdout.length + both.stderr.length, 5000)
})

test('an endless printer that nobody reads does not fill the memory of the server', async () => {
  await using sandbox = await suite.create()
  const before = rssBytes()
  const printers = await Promise.all(
    [1, 2, 3].map(() =>
      sandbox.exec.spawn('yes "$(head -c 1000 /dev/zero | tr "\\0" x)"', { keepOutput: '1Mi' }),
    ),
  )
  await sleep(3000)
  assert.ok(rssBytes() - before < 200 * MIB, `${before} grew to ${rssBytes()}`)
  const { outputBytes } = await sandbox.exec.get(printers[0]!.id)
  assert.ok(outputBytes > 0)
  const kept = await sandbox.exec.output(printers[0]!.id)
  assert.ok(kept.stdout.length <= MIB && kept.truncated)
  await Promise.all(printers.map(({ id }) => sandbox.exec.kill(id)))
  assert.equal(await say(sandbox, 'echo fine'), 'fine')
})

test('output of every shape arrives as it was printed', async () => {
  await using sandbox = await suite.create()
  const line = await sandbox.exec.run(['python3', '-c', "print('x' * 3_000_000, end='')"])
  assert.equal(line.stdout, 'x'.repeat(3_000_000))
  const script = 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)'
  const binary = await sandbox.exec.run(['python3', '-c', script], { encoding: 'base64' })
  assert.deepEqual(
    Buffer.from(binary.stdout, 'base64'),
    Buffer.from(
      Array(100)
        .fill([...Array(256).keys()])
        .flat(),
    ),
  )
  const text = await sandbox.exec.run(['python3', '-c', script])
  assert.equal(text.exitCode, 0)
  const closed = await sandbox.exec.run('exec >&- 2>&-; sleep 0.3; exit 9')
  assert.deepEqual([closed.exitCode, closed.stdout], [9, ''])
  const held = await sandbox.exec.run('sleep 60 & echo done')
  assert.deepEqual([held.exitCode, held.stdout], [0, 'done\n'])
})

test('three thousand children that nobody waits for are reaped', async () => {
  await using sandbox = await suite.create({ resources: { pids: 300 } })
  const orphans = 'i=0; while [ $i -lt 3000 ]; do (true & ); i=$((i+1)); done; echo done'
  assert.equal(await say(sandbox, ['bash', '-c', orphans]), 'done')
  const zombies = 'grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l'
  let left = Number(await say(sandbox, zombies))
  for (let tries = 0; left > 0 && tries < 50; tries++) left = Number(await say(sandbox, zombies))
  assert.equal(left, 0)
})

test('many tiny files are made and removed', async () => {
  await using sandbox = await suite.create()
  await say(sandbox, [
    'python3',
    '-c',
    "import os\nos.mkdir('t')\nfor i in range(30000): open(f't/{i}', 'w').close()",
  ])
  assert.equal((await sandbox.files.list('t')).length, 30_000)
})

test('two hundred commands at once all give their own result', async () => {
  await using sandbox = await suite.create()
  const results = await Promise.all(
    Array.from({ length: 200 }, (_, n) => sandbox.exec.run(`echo ${n}; exit ${n % 100}`)),
  )
  results.forEach((result, n) => {
    assert.deepEqual([result.stdout, result.exitCode], [`${n}\n`, n % 100])
  })
})

test('a process that ignores SIGTERM is ended by a timeout and by a kill, with its children', async () => {
  await using sandbox = await suite.create()
  const stubborn = 'trap "" TERM INT HUP; (trap "" TERM; sleep 4242 & wait) & while :; do sleep 1; done'
  const timed = await sandbox.exec.run(stubborn, { timeout: '500ms' })
  assert.deepEqual([timed.timedOut, timed.exitCode], [true, 124])
  const spawned = await sandbox.exec.spawn(stubborn)
  await sandbox.exec.kill(spawned.id, 'SIGTERM')
  assert.equal((await sandbox.exec.get(spawned.id)).status, 'running')
  await sandbox.exec.kill(spawned.id)
  while ((await sandbox.exec.get(spawned.id)).status === 'running') await sleep(10)
  assert.equal(await say(sandbox, 'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "[4]242" || true'), '0')
})

test('a program that burns every core leaves room for the others', async () => {
  await using sandbox = await suite.create({ resources: { cpu: 1 } })
  await sandbox.exec.spawn('for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait', {
    timeout: '3s',
  })
  await watch.answersAgain(5)
})

test('the neighbour answered every time', async () => {
  const { calls, failures } = await watch.stop()
  assert.deepEqual(failures, [])
  assert.ok(calls > 20, `${calls} calls`)
  assert.equal((await suite.islet.health()).status, 'ok')
})

function watchNeighbour() {
  const failures: string[] = []
  const generous = () => AbortSignal.timeout(30_000)
  let calls = 0
  let isOver = false
  const ask = async (sandbox: Sandbox): Promise<void> => {
    try {
      const result = await sandbox.exec.run(`echo ${calls}`, { signal: generous() })
      if (result.stdout !== `${calls}\n`) failures.push(JSON.stringify(result))
    } catch (error) {
      failures.push(String(error))
    }
    calls++
  }
  const loop = (async () => {
    for (; !isOver; await sleep(100)) await ask(neighbour)
  })()
  return {
    async answersAgain(times = 3): Promise<void> {
      for (const wanted = calls + times; calls < wanted && failures.length === 0; ) await sleep(20)
      assert.deepEqual(failures, [])
    },
    async stop() {
      isOver = true
      await loop
      return { calls, failures }
    },
  }
}

function rssBytes(): number {
  const status = readFileSync(`/proc/${suite.server.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024
}
