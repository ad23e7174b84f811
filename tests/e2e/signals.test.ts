// Signals and what programs inside can reach, behind the real wall.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PortSignalEvent, Sandbox, SignalEvent } from 'islet'
import { until } from '../coming-from/until.ts'
import { killCells } from '../faults/crash.ts'
import { slotOf } from '../support/leftovers.ts'
import { needs } from '../support/programs.ts'
import { refused, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

needs('curl')

const suite = await startSuite()
const PLAIN = { user: '1000' }

async function listen(sandbox: Sandbox): Promise<SignalEvent[]> {
  const service = await sandbox.signals.start()
  const events: SignalEvent[] = []
  service.on('signal', (event) => events.push(event))
  return events
}

test('programs of any user send signals, and reach nothing else of the link', async () => {
  await using sandbox = await suite.create()
  const events = await listen(sandbox)
  await say(sandbox, 'islet-signal by.root', { user: 'root' })
  await say(sandbox, 'islet-signal by.plain', PLAIN)
  await say(sandbox, '/.islet/islet-signal error "from a path"', PLAIN)
  const script = 'curl -sf --unix-socket /.islet/inside.sock -H "Content-Type: application/json"'
  await say(sandbox, `${script} -d '{"signal": "by.curl"}' http://localhost/v1/signals`, PLAIN)
  await until(() => events.length === 4)
  assert.deepEqual(
    events.map((event) => ('message' in event ? event.message : event.signal)),
    ['by.root', 'by.plain', 'from a path', 'by.curl'],
  )
  await refused(sandbox, 'ls /.islet', PLAIN)
  const dial = 'import socket; socket.socket(socket.AF_UNIX).connect("/.islet/link.sock")'
  const { stderr } = await refused(sandbox, `python3 -c '${dial}'`, PLAIN)
  assert.match(stderr, /Permission denied/)
  for (const attempt of ['rm /.islet/inside.sock', 'mv /.islet/inside.sock /tmp/x', 'touch /.islet/y']) {
    await refused(sandbox, attempt, { user: 'root' })
  }
})

test('listeners of one sandbox do not receive signals of another', async () => {
  await using one = await suite.create()
  await using other = await suite.create()
  const [heard, unheard] = [await listen(one), await listen(other)]
  await say(one, 'islet-signal mine')
  await say(other, 'islet-signal theirs')
  await until(() => heard.length > 0 && unheard.length > 0)
  assert.deepEqual([heard, unheard], [[{ signal: 'mine' }], [{ signal: 'theirs' }]])
})

test('the signal for an opened port has a URL that works, for any user and address', async () => {
  await using sandbox = await suite.create({ network: { enabled: false } })
  await say(sandbox, 'mkdir -p /tmp/www && echo hello > /tmp/www/index.html')
  const before = await sandbox.exec.spawn('exec python3 -m http.server 7999', { cwd: '/tmp/www' })
  await until(async () => (await sandbox.ports()).some(({ port }) => port === 7999))
  const ports: PortSignalEvent[] = []
  const service = await sandbox.signals.start()
  service.on('port', (event) => ports.push(event))
  for (const [port, bind] of [
    [8001, '127.0.0.1'],
    [8002, '0.0.0.0'],
    [8003, '::1'],
  ] as const) {
    const command = ['python3', '-m', 'http.server', String(port), '--bind', bind]
    const { id, pid } = await sandbox.exec.spawn(command, { cwd: '/tmp/www', ...PLAIN })
    const told = () => ports.filter((event) => event.port === port)
    await until(() => told().length === 1)
    assert.equal(told()[0]!.type, 'open')
    const found = (await sandbox.ports()).find((one) => one.port === port)
    assert.deepEqual([found?.address, found?.uid, found?.pid], [bind, 1000, pid])
    const page = await fetch(told()[0]!.url, { headers: { authorization: `Bearer ${suite.server.key}` } })
    assert.equal(await page.text(), 'hello\n')
    await sandbox.exec.kill(id)
    await until(() => told().length === 2)
    assert.deepEqual([told()[1]!.type, told()[1]!.url], ['close', told()[0]!.url])
  }
  assert.ok(!ports.some(({ port }) => port === 7999))
  await sandbox.exec.kill(before.id)
  await service.stop()
})

test('after a crash of the server signals are heard again, and the store is where it was', async () => {
  await using sandbox = await suite.create({ storeAccess: true })
  const service = await sandbox.signals.start()
  const events: SignalEvent[] = []
  let gaps = 0
  service.on('signal', (event) => events.push(event))
  service.on('overflow', () => gaps++)
  // A program that was given its address before the crash and uses it afterwards.
  const program = `
import json, os, sys, urllib.request as u
headers = {'Authorization': 'Bearer ' + os.environ['ISLET_STORE_TOKEN'], 'Content-Type': 'application/json'}
for line in sys.stdin:
    url = os.environ['ISLET_STORE_URL'] + '/' + line.strip()
    u.urlopen(u.Request(url, method='PUT', data=json.dumps({'value': line.strip()}).encode(), headers=headers)).read()
    print(line.strip(), flush=True)`
  const printed: string[] = []
  const session = await sandbox.exec.start(['python3', '-c', program], {
    stdin: true,
    onStdout: (data) => void printed.push(Buffer.from(data).toString()),
  })
  await session.sendStdin('before\n')
  await until(() => printed.join('') === 'before\n')
  await suite.server.kill()
  await refused(sandbox, 'islet-signal lost').catch(() => {}) // nobody is there to run it either
  await suite.server.start()
  await until(() => gaps === 1)
  await say(sandbox, 'islet-signal again')
  await until(() => events.length === 1)
  assert.ok(service.isActive())
  await session.sendStdin('after\n')
  await until(() => printed.join('') === 'before\nafter\n')
  assert.deepEqual((await sandbox.store.list()).keys, ['after', 'before'])
  // New commands are given the same, and the port is still none of the sandbox's own.
  const url = await say(sandbox, 'echo $ISLET_STORE_URL')
  assert.equal((await sandbox.ports()).length, 0)
  const curl = `curl -sf -H "Authorization: Bearer $ISLET_STORE_TOKEN" ${url}/after`
  assert.equal(JSON.parse(await say(sandbox, curl, PLAIN)).value, 'after')
  await session.kill()
})

test('a sandbox that is started again over its files is given its store anew', async () => {
  await using sandbox = await suite.create({ storeAccess: true })
  await sandbox.store.set('kept', { value: 1 })
  await suite.server.kill()
  killCells(slotOf(suite.server.dataDir)!)
  await suite.server.start()
  await until(async () => (await sandbox.getInfo()).status === 'running')
  const curl = 'curl -sf -H "Authorization: Bearer $ISLET_STORE_TOKEN" $ISLET_STORE_URL/kept'
  assert.equal(JSON.parse(await say(sandbox, curl)).value, 1)
  assert.equal(await say(sandbox, 'islet-signal again && echo sent'), 'sent')
})
