import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import {
  childrenOf,
  collect,
  type Fields,
  Guest,
  isAlive,
  isRoot,
  parseOutput,
  type Stream,
  stdinFrame,
  until,
} from './harness.ts'
import { refusal } from './refusal.ts'

const NO_CORE = { rlimit: [{ resource: 4, soft: 0, hard: 0 }] }

/** Reads and acknowledges output until it holds the text. */
async function outputUntil(stream: Stream, text: string): Promise<string> {
  let seen = ''
  while (!seen.includes(text)) {
    const { offset, bytes } = parseOutput(await stream.next('OUTPUT'))
    seen += bytes
    stream.send('ACK', { offset: offset + bytes.length })
  }
  return seen
}

/** Waits for EXITED and skips output before it. */
async function exited(stream: Stream): Promise<Fields> {
  for (;;) {
    const message = await stream.next('OUTPUT', 'EXITED')
    if (message.name === 'EXITED') return message.fields
  }
}

describe('processes', () => {
  let guest: Guest
  before(async () => {
    guest = await Guest.start()
  })
  after(() => guest.stop())

  test('every exit code is reported as it is', async () => {
    const codes = Array.from({ length: 256 }, (_, code) => code)
    const results = await Promise.all(codes.map((code) => guest.sh(`exit ${code}`)))
    assert.deepEqual(
      results.map(({ code, signal }) => [code, signal]),
      codes.map((code) => [code, 0]),
    )
  })

  test('every signal that ends a process is named', async () => {
    const harmless = [17, 18, 19, 20, 21, 22, 23, 28]
    const signals = Array.from({ length: 64 }, (_, i) => i + 1).filter(
      (signal) => !harmless.includes(signal) && signal !== 32 && signal !== 33,
    )
    const results = await Promise.all(signals.map((signal) => guest.sh(`kill -${signal} $$`, NO_CORE)))
    assert.deepEqual(
      results.map(({ code, signal }) => [code, signal]),
      signals.map((signal) => [0, signal]),
    )
  })

  test('stdout and stderr are told apart and keep their order', async () => {
    const { stdout, stderr, code } = await guest.sh('echo one; echo two >&2; echo three; exit 4')
    assert.equal(stdout.toString(), 'one\nthree\n')
    assert.equal(stderr.toString(), 'two\n')
    assert.equal(code, 4)
  })

  test('with quiet_ms SPAWNED waits for what comes next', async () => {
    const path = `PATH=${process.env.PATH}`
    const quiet = { env: [path], quietMs: 3_600_000 }
    const stream = guest.request('SPAWN', { ...quiet, id: 'prc-quiet', argv: ['sleep', '1000'] })
    await guest.ping()
    assert.deepEqual(stream.queue, [])
    await guest.ask('SIGNAL', { id: 'prc-quiet', signal: 9, group: 1 })
    assert.ok((await stream.next('SPAWNED')).fields.pid > 0)
    assert.equal((await stream.next('EXITED')).fields.signal, 9)
    stream.send('FORGET')
    assert.equal((await guest.sh('echo said', { quietMs: 3_600_000 })).stdout.toString(), 'said\n')
  })

  test('SPAWNED comes by itself after quiet_ms', async () => {
    const stream = await guest.spawn(['sleep', '1000'], { quietMs: 1 })
    stream.send('FORGET')
  })

  test('attaching to a quiet process is answered with ATTACHED, not SPAWNED', async () => {
    const quiet = { id: 'prc-attached', argv: ['/bin/sleep', '1000'], quietMs: 3_600_000 }
    const first = guest.request('SPAWN', quiet)
    const second = guest.request('ATTACH', { id: quiet.id, offset: 0 })
    await second.next('ATTACHED')
    await second.next('STDIN_WINDOW')
    second.send('FORGET')
    await guest.ping()
    assert.deepEqual([first.queue, second.queue], [[], []])
  })

  test('the environment, the directory and the arguments are exactly those asked for', async () => {
    const profile = ['HOME=/h', 'USER=u', 'LOGNAME=l', 'SHELL=']
    const { stdout } = await guest.run(['/usr/bin/env'], { env: ['A=1', 'B=two words', 'C=', ...profile] })
    assert.equal(stdout.toString(), `A=1\nB=two words\nC=\n${profile.join('\n')}\n`)
    assert.equal((await guest.sh('pwd', { cwd: '/usr/bin' })).stdout.toString(), '/usr/bin\n')
    const args = ['', 'a b', "it's", '\u00fc']
    const printed = await guest.run(['printf', '<%s>', ...args])
    assert.equal(printed.stdout.toString(), args.map((arg) => `<${arg}>`).join(''))
  })

  test('a child starts with default signals, no extra fds, and the limits it was given', async () => {
    const { stdout } = await guest.sh(
      'grep -E "^Sig(Blk|Ign)" /proc/self/status; ls /proc/self/fd; ulimit -n',
    )
    const lines = stdout.toString().trim().split('\n')
    for (const line of lines.slice(0, 2)) assert.match(line, /\t0+$/)
    assert.deepEqual(lines.slice(2, -1), ['0', '1', '2', '3']) // 3 is the directory that ls reads
    const files = (
      await guest.sh('ulimit -n; ulimit -Hn', { rlimit: [{ resource: 7, soft: 123, hard: 456 }] })
    ).stdout
    assert.equal(files.toString(), '123\n456\n')
  })

  test('a child leads its own session and group and is preferred by the memory killer', async () => {
    const { stdout } = await guest.sh('cut -d" " -f1,5,6 /proc/$$/stat; cat /proc/$$/oom_score_adj')
    const [ids, score] = stdout.toString().trim().split('\n')
    const [pid, group, session] = ids!.split(' ')
    assert.equal(group, pid)
    assert.equal(session, pid)
    assert.equal(score, '300')
  })

  test('what never ran is an error with its stage and kind', async () => {
    const text = guest.path('text')
    const nowhere = guest.path('script')
    writeFileSync(text, 'no program', { mode: 0o644 })
    writeFileSync(guest.path('garbage'), 'no program', { mode: 0o755 })
    writeFileSync(nowhere, '#!/no/such/interpreter\n', { mode: 0o755 })
    const cases: [string[], Fields, string, string, string][] = [
      [['/no/such'], {}, 'exec', 'NOT_FOUND', 'ENOENT'],
      [['no-such-program'], {}, 'exec', 'NOT_FOUND', 'ENOENT'],
      [['true'], { env: ['PATH=/nowhere:/etc'] }, 'exec', 'NOT_FOUND', 'ENOENT'],
      [[nowhere], {}, 'exec', 'NOT_FOUND', 'ENOENT'],
      [[text], {}, 'exec', 'NOT_EXECUTABLE', 'EACCES'],
      [['text'], { env: [`PATH=${guest.dir}`] }, 'exec', 'NOT_EXECUTABLE', 'EACCES'],
      [[guest.path('garbage')], {}, 'exec', 'NOT_EXECUTABLE', 'ENOEXEC'],
      [['/etc'], {}, 'exec', 'NOT_EXECUTABLE', 'EACCES'],
      [['/bin/true'], { cwd: '/no/such' }, 'cwd', 'NOT_FOUND', 'ENOENT'],
      [['/bin/true'], { cwd: text }, 'cwd', 'NOT_DIRECTORY', 'ENOTDIR'],
      [['/bin/true'], { user: 'nobody-here' }, 'user', 'NO_USER', ''],
      [['/bin/true'], { user: 'root:nogroup-here' }, 'user', 'NO_USER', ''],
    ]
    for (const [argv, fields, stage, kind, errnoName] of cases) {
      const error = await refusal(guest.spawn(argv, fields))
      assert.deepEqual([error.stage, error.kind, error.errnoName], [stage, kind, errnoName], argv.join(' '))
    }
    if (isRoot) {
      mkdirSync(guest.path('closed'), { mode: 0o700 })
      const error = await refusal(guest.spawn(['/bin/true'], { user: '65534', cwd: guest.path('closed') }))
      assert.deepEqual([error.stage, error.kind], ['cwd', 'DENIED'])
    }
    assert.equal((await guest.ask('PROCESSES')).process.length, 0)
  })

  test('an id is used by one process at a time', async () => {
    const first = await guest.spawn(['cat'], { id: 'twice', stdin: 1 })
    const error = await refusal(guest.spawn(['cat'], { id: 'twice' }))
    assert.deepEqual([error.kind, error.stage], ['EXISTS', 'request'])
    first.send('STDIN_END')
    await collect(first)
    assert.equal((await guest.run(['true'], { id: 'twice' })).code, 0)
  })

  test('orphans are adopted and reaped, thousands of them', async () => {
    const script = 'i=0; while [ $i -lt 2000 ]; do (: & ); i=$((i+1)); done; (sleep 0.05 &) ; echo done'
    const { stdout } = await guest.sh(script)
    assert.equal(stdout.toString(), 'done\n')
    await until('no child is left, not even a zombie', () => childrenOf(guest.pid).length === 0)
  })

  test('a command ends although a background child holds its pipes, and the child keeps running', async () => {
    const out = guest.path('background')
    const go = guest.path('go')
    const script = `(while [ ! -e ${go} ]; do echo tick; echo tock >&2; sleep 0.02; done; echo fine > ${out}) & echo $!`
    const { code, stdout } = await guest.sh(script)
    assert.equal(code, 0)
    // The child may have printed before it.
    const pid = Number(/^\d+$/m.exec(stdout.toString())?.[0])
    assert.ok(isAlive(pid), 'the background child was alive when the command had ended')
    writeFileSync(go, '')
    await until('the child has printed everything without being killed', () => !isAlive(pid))
    assert.equal(readFileSync(out, 'utf8'), 'fine\n')
  })

  test('a timeout kills the whole session and is reported', async () => {
    const stream = await guest.spawn(
      ['bash', '-c', 'sleep 1000 & sleep 1000 & set -m; sleep 1000 & trap "" TERM INT; echo $!; wait; wait'],
      { timeoutMs: 300 },
    )
    const other = Number((await outputUntil(stream, '\n')).trim())
    assert.notEqual(readFileSync(`/proc/${other}/stat`, 'utf8').split(' ')[4], String(stream.pid))
    const { timedOut, signal } = await exited(stream)
    assert.deepEqual([timedOut, signal], [1, 9])
    assert.equal(isAlive(other), false)
    stream.send('FORGET')
    await until('nothing of the session is left', () => childrenOf(guest.pid).length === 0)
  })

  test('a command that ends in time is not reported as timed out', async () => {
    const { timedOut, code } = await guest.sh('exit 5', { timeoutMs: 60_000 })
    assert.deepEqual([timedOut, code], [false, 5])
  })

  test('with ends_session the rest of the session is dead before EXITED is sent', async () => {
    const script = 'trap "" TERM HUP; sleep 600 & echo $!; set -m; sleep 600 & echo $!; exit 3'
    const { code, stdout } = await guest.run(['bash', '-c', script], { endsSession: 1 })
    assert.equal(code, 3)
    for (const pid of stdout.toString().trim().split('\n')) assert.equal(isAlive(Number(pid)), false)
    await until('nothing of the session is left', () => childrenOf(guest.pid).length === 0)
  })

  test('a signal reaches the process alone or its whole session', async () => {
    const script = `
      trap 'echo one' USR1
      (trap 'echo two; exit' USR1; echo up; while :; do sleep 0.01; done) &
      while kill -0 $! 2> /dev/null; do wait; done
      echo end`
    const alone = await guest.spawn(['sh', '-c', script])
    await outputUntil(alone, 'up')
    await guest.ask('SIGNAL', { id: alone.id, signal: 10, group: 0 })
    assert.equal(await outputUntil(alone, 'one\n'), 'one\n')
    await guest.ask('SIGNAL', { id: alone.id, signal: 9, group: 1 })
    assert.equal((await exited(alone)).signal, 9)
    alone.send('FORGET')
    await until('nothing of it is left', () => childrenOf(guest.pid).length === 0)
    const group = await guest.spawn(['sh', '-c', script])
    await outputUntil(group, 'up')
    await guest.ask('SIGNAL', { id: group.id, signal: 10, group: 1 })
    const seen = await outputUntil(group, 'end\n')
    assert.match(seen, /one\n/)
    assert.match(seen, /two\n/)
    assert.equal((await exited(group)).code, 0)
    group.send('FORGET')
  })

  test('signals to unknown and to ended processes are refused', async () => {
    assert.equal((await refusal(guest.ask('SIGNAL', { id: 'stranger', signal: 15 }))).kind, 'NO_PROCESS')
    const stream = await guest.spawn(['true'])
    await stream.next('EXITED')
    assert.equal((await refusal(guest.ask('SIGNAL', { id: stream.id, signal: 15 }))).kind, 'NO_PROCESS')
    assert.equal(
      (await refusal(guest.ask('RESIZE', { id: stream.id, size: { cols: 1, rows: 1 } }))).kind,
      'UNSUPPORTED',
    )
    stream.send('FORGET')
  })

  test('forgetting a running process kills it', async () => {
    const stream = await guest.spawn(['sh', '-c', 'sleep 1000 & echo up; wait'])
    await outputUntil(stream, 'up')
    stream.send('FORGET')
    await until('it is gone', () => childrenOf(guest.pid).length === 0)
    assert.deepEqual((await guest.ask('PROCESSES')).process, [])
  })

  test('a thousand processes run at once', async () => {
    const streams = await Promise.all(
      Array.from({ length: 1000 }, () => guest.spawn(['/bin/cat'], { stdin: 1 })),
    )
    const { process: records } = await guest.ask('PROCESSES')
    assert.equal(records.length, 1000)
    assert.ok(records.every((record: Fields) => record.running === 1))
    for (const [i, stream] of streams.entries()) {
      stream.raw('STDIN', stdinFrame(0, `I am ${i}`))
      stream.send('STDIN_END')
    }
    const results = await Promise.all(streams.map(collect))
    assert.ok(results.every(({ code, stdout }, i) => code === 0 && stdout.toString() === `I am ${i}`))
    assert.deepEqual((await guest.ask('PROCESSES')).process, [])
  })

  test('kill all is refused by a guest that is not PID 1', async () => {
    const error = await refusal(guest.ask('KILL_ALL'))
    assert.equal(error.kind, 'UNSUPPORTED')
  })
})

describe('a guest that is told to end', () => {
  test('ends everything it started, sessions of their own included', async (t) => {
    const guest = await Guest.start()
    t.after(() => guest.stop())
    const stream = await guest.spawn([
      'sh',
      '-c',
      'setsid sleep 1000 & trap "" TERM; sleep 1000 & echo $! $!; wait',
    ])
    await outputUntil(stream, '\n')
    let pids: number[] = []
    await until('all three run', () => {
      pids = [...childrenOf(guest.pid), ...childrenOf(stream.pid)]
      return pids.length === 3
    })
    await guest.stop()
    assert.deepEqual(pids.filter(isAlive), [])
  })

  test('does not end when its server does', async (t) => {
    const guest = await Guest.start()
    t.after(() => guest.stop())
    const stream = await guest.spawn(['sleep', '1000'])
    await guest.stopListening()
    await until('it has noticed', () => !guest.socket)
    guest.child.kill('SIGINT')
    guest.child.kill('SIGHUP')
    await guest.listen()
    await guest.connected()
    assert.ok(isAlive(stream.pid))
  })
})
