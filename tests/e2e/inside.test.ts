// Hostile programs inside a sandbox, at the one socket that leads to this server: they hurt only their own sandbox. A neighbour is asked all
// the time and always answers, and the server's memory and open files stay bounded.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecResult, Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const MIB = 1024 * 1024
const sandbox = await suite.create({ storeAccess: true })
const neighbour = await suite.create()
const watch = watchServer()
after(() => watch.stop())

/** Python inside, with a `connect` and what most attacks need. */
const PRELUDE = `
import os, socket, sys, time, threading
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect('/.islet/inside.sock')
    return s
def until(s, count):
    t = time.time() + s
    while time.time() < t:
        try: count()
        except OSError: pass
token = os.environ['ISLET_STORE_TOKEN']
`

function attack(script: string, from: Sandbox = sandbox): Promise<ExecResult> {
  return from.exec.run(['python3', '-c', PRELUDE + script], { user: '1000', timeout: '60s' })
}

/** The door is open again for who behaves. */
async function worksAgain(): Promise<void> {
  await until(async () => (await sandbox.exec.run('islet-signal fine')).exitCode === 0)
  await watch.answersAgain()
}

test('connections again and again, from many threads', async () => {
  await attack(`
for _ in range(8): threading.Thread(target=until, args=(4, lambda: connect().close()), daemon=True).start()
time.sleep(4.5)`)
  await worksAgain()
})

test('more connections than it may hold, each with half a request', async () => {
  const { stdout } = await attack(`
sockets, served = [], 0
for _ in range(500):
    try:
        s = connect(); s.send(b'POST /v1/signals HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Le'); sockets.append(s)
    except OSError: pass
time.sleep(1)
for s in sockets:
    s.setblocking(False)
    try: served += s.recv(1) != b''
    except BlockingIOError: served += 1
    except OSError: pass
print(served)`)
  assert.ok(Number(stdout) <= 64, stdout)
  await worksAgain()
})

test('bodies without end, with a length and without, known and unknown', async () => {
  const { stdout } = await attack(`
def send(head):
    sent, answer = 0, b''
    try:
        s = connect(); s.send(head)
        chunk = b'10000\\r\\n' + b'x' * 65536 + b'\\r\\n'
        while sent < 1 << 30:
            sent += s.send(chunk)
    except OSError: pass
    try: answer = s.recv(100)
    except OSError: pass
    return sent, answer.split(b'\\r\\n')[0].decode()
worst = 0
for path in ['/v1/signals', '/v1/store/x', '/v1/sandboxes']:
    for auth in ['', 'Authorization: Bearer ' + token + '\\r\\n']:
        for length in ['Content-Length: 1073741824', 'Transfer-Encoding: chunked']:
            method = 'PUT' if 'store' in path else 'POST'
            head = f'{method} {path} HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n{auth}{length}\\r\\n\\r\\n'
            sent, answer = send(head.encode())
            worst = max(worst, sent)
print(worst)`)
  assert.ok(Number(stdout) < 64 * MIB, stdout)
  await worksAgain()
})

test('large bodies on every connection at once', async () => {
  const before = watch.rss()
  await attack(`
body = b'{"value": "' + b'x' * (8 << 20) + b'"}'
head = f'PUT /v1/store/x HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nAuthorization: Bearer {token}\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n'.encode()
def put():
    try:
        s = connect(); s.sendall(head + body); s.recv(100)
    except OSError: pass
threads = [threading.Thread(target=put, daemon=True) for _ in range(60)]
for t in threads: t.start()
end = time.time() + 15
for t in threads: t.join(max(0, end - time.time()))`)
  assert.ok(watch.peak() - before < 400 * MIB, `${before} grew to ${watch.peak()}`)
  await worksAgain()
})

test('heads that are too large, requests that are none, and thousands sent ahead', async () => {
  const { stdout } = await attack(`
def ask(data):
    answer = b''
    try:
        s = connect(); s.sendall(data)
        while True:
            piece = s.recv(65536)
            if not piece: break
            answer += piece
    except OSError: pass
    return answer
for data in [b'X' * (1 << 20), b'GET / HTTP/1.1\\r\\n' + b'A: b\\r\\n' * 100000, b'\\x00' * 1000, b'GET http://[ HTTP/1.1\\r\\n\\r\\n', b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n']:
    print(ask(data)[:12].decode(errors='replace'))
one = b'POST /v1/signals HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 0\\r\\n\\r\\n'
print(ask(one * 20000).count(b'HTTP/1.1') < 10)`)
  const lines = stdout.trim().split('\n')
  assert.equal(lines.pop(), 'True')
  for (const line of lines) assert.match(line, /^(HTTP\/1\.1 4\d\d)?$/)
  await worksAgain()
})

test('signals as fast as they can be sent', async () => {
  const service = await sandbox.signals.start()
  let heard = 0
  service.on('signal', () => heard++)
  const { stdout } = await attack(`
sent = refused = 0
def flood():
    global sent, refused
    s = connect()
    body = b'{"signal":"spam"}'
    one = b'POST /v1/signals HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n%s' % (len(body), body)
    end = time.time() + 4
    while time.time() < end:
        s.sendall(one)
        if b' 204 ' in s.recv(65536): sent += 1
        else: refused += 1
threads = [threading.Thread(target=flood, daemon=True) for _ in range(32)]
for t in threads: t.start()
for t in threads: t.join()
print(sent, refused)`)
  const [sent, refused] = stdout.split(' ').map(Number)
  // A hundred at once, and a hundred a second, with room for a machine that stalls.
  assert.ok(sent! <= 1500, stdout)
  assert.ok(refused! > 0, stdout)
  await until(() => heard === sent)
  await service.stop()
  await worksAgain()
})

test('the store of another sandbox, and everything of the server, stay out of reach', async () => {
  await using other = await suite.create({ storeAccess: true })
  await other.store.set('secret', { value: 'theirs' })
  const theirs = await say(other, 'echo $ISLET_STORE_TOKEN')
  const own = await say(sandbox, 'echo $ISLET_STORE_TOKEN')
  const url = new URL(await say(sandbox, 'echo $ISLET_STORE_URL')).origin
  const ask = async (path: string, token: string): Promise<string> =>
    say(sandbox, [
      'curl',
      '-s',
      '--path-as-is',
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      '-H',
      `Authorization: Bearer ${token}`,
      url + path,
    ])
  assert.equal(await ask('/v1/store', own), '200')
  assert.equal(await ask('/v1/store/secret', own), '404')
  assert.equal(await ask('/v1/store/secret', theirs), '401')
  for (const token of [own, theirs, suite.server.key]) {
    for (const path of [
      `/v1/sandboxes/${other.id}/store/secret`,
      `/v1/sandboxes/${sandbox.id}`,
      `/v1/store/../sandboxes/${other.id}/store/secret`,
      `/v1/store/%2e%2e/sandboxes/${other.id}/store/secret`,
      '/v1/sandboxes',
      '/health',
    ]) {
      assert.equal(await ask(path, token), '403', path)
    }
  }
})

test('the neighbour answered every time, and the server has let go of everything', async () => {
  await until(() => openFiles() < 200)
  const { calls, failures } = await watch.stop()
  assert.deepEqual(failures, [])
  assert.ok(calls > 20, `${calls} calls`)
  const lines = suite.server.output.split('\n').length
  assert.ok(lines < 5000, `${lines} lines in the log`)
})

function openFiles(): number {
  return readdirSync(`/proc/${suite.server.pid}/fd`).length
}

function watchServer() {
  const failures: string[] = []
  let calls = 0
  let peak = 0
  let isOver = false
  const rss = () => {
    const status = readFileSync(`/proc/${suite.server.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024
  }
  const loop = (async () => {
    for (; !isOver; await sleep(50)) {
      try {
        const result = await neighbour.exec.run(`echo ${calls}`, { signal: AbortSignal.timeout(30_000) })
        if (result.stdout !== `${calls}\n`) failures.push(JSON.stringify(result))
      } catch (error) {
        failures.push(String(error))
      }
      calls++
      peak = Math.max(peak, rss())
    }
  })()
  return {
    rss,
    peak: () => peak,
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
