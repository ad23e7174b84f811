import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { Guest, isRoot, parseOutput, type Stream, until } from './harness.ts'

type Started = Awaited<ReturnType<Guest['spawn']>>

interface PortRecord {
  port: number
  address: string
  uid: number
  pid?: number
  session?: number
}

const LISTEN = `
import os, socket, sys, time
sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(int(sys.argv[1]))]
sys.stdout.write(' '.join(str(s.getsockname()[1]) for s in sockets) + '\\n')
sys.stdout.flush()
time.sleep(1000)
`

describe('ports', () => {
  let guest: Guest
  before(async () => {
    guest = await Guest.start()
  })
  after(() => guest.stop())

  const ports = async (): Promise<PortRecord[]> => (await guest.ask('PORTS')).port
  const find = async (port: number) => (await ports()).find((record) => record.port === port)
  /** A program that listens on this many ports. */
  const listen = async (count: number, argv: string[] = [], fields = {}) => {
    const python = ['/usr/bin/python3', '-c', LISTEN, String(count)]
    const stream = await guest.spawn([...argv, ...python], fields)
    return { stream, ports: (await line(stream)).split(' ').map(Number) }
  }
  /** Kills it, and waits until nothing of it is left. */
  const end = async (stream: Started, own: number[]) => {
    const kill = { id: stream.id, signal: 9, group: 1 }
    await guest.ask('SIGNAL', kill).catch(() => {}) // it may have ended
    while ((await stream.next()).name !== 'EXITED') {}
    stream.send('FORGET')
    await until('the ports are closed', async () => !(await ports()).some(({ port }) => own.includes(port)))
  }

  test('lists what listens, with its address', async () => {
    const servers = await Promise.all(['127.0.0.1', '::1', '0.0.0.0'].map(serve))
    const found = await Promise.all(servers.map(({ port }) => find(port)))
    assert.deepEqual(
      found.map((record) => record?.address),
      ['127.0.0.1', '::1', '0.0.0.0'],
    )
    assert.equal(found[0]?.uid, process.getuid?.())
    for (const { server } of servers) await new Promise((done) => server.close(done))
    assert.equal(await find(servers[0]!.port), undefined)
  })

  test('names a process that holds each, and the session it came from', async () => {
    const { stream, ports: own } = await listen(3)
    for (const port of own) {
      const { pid, session } = (await find(port))!
      assert.deepEqual([pid, session], [stream.pid, stream.pid])
    }
    await end(stream, own)
  })

  test('names the child that listens, and the session of the command that started it', async () => {
    const { stream, ports: own } = await listen(1, ['/bin/sh', '-c', '"$@" & wait', 'sh'])
    const { pid, session } = (await find(own[0]!))!
    assert.notEqual(pid, stream.pid)
    assert.equal(session, stream.pid)
    await end(stream, own)
  })

  test('names the remaining holder when another holder of the same socket has ended', async () => {
    const script = `${LISTEN.replace('time.sleep(1000)', '')}
if os.fork() == 0: time.sleep(1000)
sys.stdin.read(1)`
    const stream = await guest.spawn(['/usr/bin/python3', '-c', script, '1'], { stdin: 1 })
    const port = Number(await line(stream))
    assert.ok((await find(port))?.pid)
    stream.send('STDIN_END')
    await until('the first has ended', async () => (await find(port))?.pid !== stream.pid)
    await until('the other is found', async () => (await find(port))?.pid !== undefined)
    const { pid, session } = (await find(port))!
    assert.equal(session, stream.pid)
    process.kill(pid!)
    await end(stream, [port])
  })

  test('does not name processes that do not descend from the guest', async () => {
    const { server, port } = await serve('127.0.0.1')
    const record = (await find(port))!
    assert.equal(record.pid, undefined)
    assert.equal(record.session, undefined)
    await new Promise((done) => server.close(done))
  })

  test('names processes of other users too', { skip: isRoot ? false : 'needs root' }, async () => {
    const { stream, ports: own } = await listen(1, [], { user: '1234' })
    const { pid, uid } = (await find(own[0]!))!
    assert.deepEqual([pid, uid], [stream.pid, 1234])
    await end(stream, own)
  })

  test('still answers when there are more sockets than it lists', async () => {
    const many = await listen(1000)
    const more = await listen(200)
    const count = (await ports()).length
    assert.ok(count >= 1000 && count <= 1024, `${count}`)
    await end(many.stream, many.ports)
    await until('all are named', async () =>
      (await ports())
        .filter(({ port }) => more.ports.includes(port))
        .every(({ pid }) => pid === more.stream.pid),
    )
    await end(more.stream, more.ports)
  })
})

async function serve(host: string): Promise<{ server: Server; port: number }> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, host, done))
  return { server, port: (server.address() as { port: number }).port }
}

/** The first line of a program's output. */
async function line(stream: Stream): Promise<string> {
  let text = ''
  while (!text.includes('\n')) {
    const message = await stream.next('OUTPUT', 'STDIN_WINDOW')
    if (message.name === 'OUTPUT') text += parseOutput(message).bytes
  }
  return text.trim()
}
