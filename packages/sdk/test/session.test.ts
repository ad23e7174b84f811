import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@islet/contract/client'
import { WebSocket as NodeWebSocket } from 'ws'
import { makeGate } from '../../server/test/support/barrier.ts'
import { startTestApi, TEST_KEY, type TestApi, until } from '../../server/test/support/server.ts'
import { Client } from '../src/client/client.ts'
import { hasCode, Sandbox, type SocketConstructor } from '../src/index.ts'
import { startProxy, type TestProxy } from './proxy.ts'

const apiKey = TEST_KEY
let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey })
})
after(() => api[Symbol.asyncDispose]())

const through = async (url: string, WebSocket?: SocketConstructor) =>
  new Sandbox(new Client({ url, apiKey, WebSocket }), await sandbox.getInfo())
const text = (data: Uint8Array) => new TextDecoder().decode(data)

const implementations: [string, SocketConstructor | undefined][] = [
  ["the platform's WebSocket", undefined],
  ['the one of ws', NodeWebSocket as unknown as SocketConstructor],
]
for (const [name, WebSocket] of implementations) {
  test(`a started command is followed to its exit code with ${name}`, async () => {
    await using proxy = await startProxy(api.url)
    const seen: string[] = []
    let stdout = ''
    const session = await (await through(proxy.url, WebSocket)).exec.start('sh', {
      args: ['-c', 'cat; echo err >&2; exit 3'],
      onStdout: async (data) => {
        stdout += text(data)
      },
      onStderr: (data) => void seen.push(`stderr ${text(data)}`),
      onExit: (code) => void seen.push(`exit ${code}`),
      onScrollbackEnd: () => void seen.push('scrollback end'),
    })
    await session.sendStdin('hello')
    session.closeStdin()
    assert.equal(await session.done, 3)
    assert.equal(stdout, 'hello')
    assert.deepEqual(seen, ['scrollback end', 'stderr err\n', 'exit 3'])
    const { headers, query } = proxy.asked.find(({ path }) => path.endsWith('/attach'))!
    assert.match(headers['sec-websocket-protocol'] ?? '', /^islet, ?islet\.bearer\.islet_t/)
    assert.doesNotMatch(String(query), /islet_t/)
  })
}

test('a message that is not as agreed ends the session with bad_response', async () => {
  for (const message of ['{"type":', 'null', '{"type":"start"}', '{"type":"exit","exitCode":"0"}']) {
    class Garbling extends NodeWebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols)
        const set = (handler: (event: { data: string }) => void) =>
          this.on('message', () => handler({ data: message }))
        Object.defineProperty(this, 'onmessage', { set })
      }
    }
    const start = (await through(api.url, Garbling as unknown as SocketConstructor)).exec.start('true')
    await assert.rejects(start, (error) => hasCode(error, 'bad_response'), message)
  }
})

test('a message of a type that only a newer server knows is passed over', async () => {
  class Newer extends NodeWebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      const set = (handler: (event: { data: unknown }) => void) =>
        this.on('message', (data: Buffer, isBinary) => {
          handler({ data: '{"type":"news"}' })
          handler({ data: isBinary ? new Uint8Array(data).buffer : data.toString() })
        })
      Object.defineProperty(this, 'onmessage', { set })
    }
  }
  const box = await through(api.url, Newer as unknown as SocketConstructor)
  const session = await box.exec.start('echo hello')
  assert.equal(await session.done, 0)
})

test('a connection that breaks is opened again and every byte is given once', async () => {
  await using proxy = await startProxy(api.url)
  const gate = makeGate(await sandbox.getInfo(), 'again')
  let seen = ''
  let cuts = 0
  const session = await (await through(proxy.url)).exec.start('seq 1 20000; cat again; seq 20001 40000', {
    onStdout: (data) => {
      seen += text(data)
      if (cuts >= 3 || seen.length < cuts * 40_000) return
      cuts++
      proxy.cutSockets()
    },
  })
  await (await gate.reached()).open()
  assert.equal(await session.done, 0)
  assert.ok(cuts > 1)
  assert.equal(seen, Array.from({ length: 40_000 }, (_, index) => `${index + 1}\n`).join(''))
  assert.equal(session.truncated, false)
})

test('input sent during a reconnect arrives afterwards, in order', async () => {
  await using proxy = await startProxy(api.url)
  let seen = ''
  const session = await (await through(proxy.url)).exec.start('cat', {
    onStdout: (data) => {
      seen += text(data)
    },
  })
  const door = breakOff(proxy)
  await door.reached
  const typed = [session.sendStdin('one '), session.sendStdin('two')]
  session.closeStdin()
  door.release()
  await Promise.all(typed)
  assert.equal(await session.done, 0)
  assert.equal(seen, 'one two')
})

test('a process that ends while the connection is broken is followed to its end all the same', async () => {
  await using proxy = await startProxy(api.url)
  const gate = makeGate(await sandbox.getInfo(), 'meanwhile')
  let seen = ''
  const session = await (await through(proxy.url)).exec.start(
    'echo first; cat meanwhile; echo last; exit 4',
    {
      onStdout: (data) => {
        seen += text(data)
      },
    },
  )
  const door = breakOff(proxy)
  await door.reached
  await (await gate.reached()).open()
  await sandbox.exec.run('true')
  door.release()
  assert.equal(await session.done, 4)
  assert.equal(seen, 'first\nlast\n')
})

test('attaching to a process that does not exist says so', async () => {
  await assert.rejects(sandbox.exec.attach(newId('process')), (error) => hasCode(error, 'process_not_found'))
})

test('input to a process that has ended is refused, and nobody has to await that', async () => {
  const session = await sandbox.exec.start('true')
  await session.done
  session.sendStdin('lost')
  await assert.rejects(session.sendStdin('refused'), (error) => hasCode(error, 'invalid_state'))
})

test('closing a session rejects its promises and leaves the process running', async () => {
  const session = await sandbox.exec.start('cat')
  session.close()
  session.close()
  await assert.rejects(session.done, { name: 'AbortError' })
  assert.equal((await sandbox.exec.get(session.processId)).status, 'running')
  await sandbox.exec.kill(session.processId)
})

test('aborting ends an attached session and leaves the process alone', async () => {
  const { id } = await sandbox.exec.spawn('sleep 600')
  const abort = new AbortController()
  const session = await sandbox.exec.attach(id, { signal: abort.signal })
  abort.abort()
  await assert.rejects(session.done, { name: 'AbortError' })
  assert.equal((await sandbox.exec.get(id)).status, 'running')
})

test('the end of the sandbox ends the session with its code', async () => {
  const other = await Sandbox.create({ url: api.url, apiKey })
  const session = await other.exec.start('cat')
  await other.kill()
  await assert.rejects(session.done, (error) => hasCode(error, 'sandbox_lost'))
})

test('keepOutput limits the kept output, and dropped bytes are counted', async () => {
  const [whole, little] = await Promise.all([
    sandbox.exec.spawn('seq 1 300000'),
    sandbox.exec.spawn('echo first >&2; seq 1 300000', { keepOutput: '64Ki' }),
  ])
  const lines = Array.from({ length: 300_000 }, (_, index) => `${index + 1}\n`).join('')
  for (const { id } of [whole, little]) await (await sandbox.exec.attach(id)).done
  const all = await sandbox.exec.output(whole.id)
  assert.ok(all.stdout === lines)
  assert.deepEqual([all.truncated, all.droppedBytes, all.outputBytes], [false, 0, lines.length])
  const kept = await sandbox.exec.output(little.id)
  const printed = lines.length + 'first\n'.length
  assert.deepEqual(
    [kept.truncated, kept.droppedBytes, kept.outputBytes, kept.stderr],
    [true, printed - 65_536, printed, ''],
  )
  assert.ok(kept.stdout === lines.slice(-65_536))
  assert.equal((await sandbox.exec.output(little.id, { maxBytes: 10 })).droppedBytes, printed - 10)
  let seen = ''
  const onStdout = (data: Uint8Array) => {
    seen += text(data)
  }
  const session = await sandbox.exec.attach(little.id, { onStdout })
  await session.done
  assert.deepEqual([session.truncated, session.droppedBytes], [true, printed - 65_536])
  assert.ok(seen === kept.stdout)
  const live = await sandbox.exec.attach(little.id, { replay: false })
  await live.done
  assert.deepEqual([live.truncated, live.droppedBytes], [false, 0])
  const cut = await sandbox.exec.run('seq 1 300000', { maxOutputBytes: 100 })
  assert.deepEqual([cut.truncated, cut.droppedBytes, cut.stdout.length], [true, lines.length - 100, 100])
  const terminal = await sandbox.terminal.create()
  const command = await terminal.command.run('seq 1 300000', { keepOutput: 4096 })
  assert.deepEqual([command.droppedBytes, command.stdout.length], [lines.length - 4096, 4096])
  for (const keepOutput of ['1Ti', 1, 'lots']) {
    await assert.rejects(sandbox.exec.spawn('true', { keepOutput }), { code: 'bad_request' })
    const service = { name: 'chatty', start: 'true', keepOutput }
    await assert.rejects(sandbox.service.start(service), { code: 'bad_request' })
  }
})

test('a terminal has its size, is typed into and resized', async () => {
  let seen = ''
  const onOutput = (data: Uint8Array) => {
    seen += text(data)
  }
  const script = 'stty size; read line; stty size; echo "<$line $TERM>"'
  const pty = await sandbox.pty.create({ cols: 100, rows: 30, command: script, onOutput })
  await until(() => seen.includes('30 100'))
  pty.resize(120, 40)
  await pty.send('typed\r')
  assert.equal(await pty.done, 0)
  assert.match(seen, /30 100[\s\S]*40 120[\s\S]*<typed xterm-256color>/)
  await assert.rejects(pty.send('late'), { code: 'invalid_state', message: /has ended/ })
})

test('a terminal without a command is a login shell, and closing it ends it', async () => {
  // An empty home, so that root's profile on this machine has no effect.
  const env = { HOME: (await sandbox.getInfo()).workdir }
  let seen = ''
  const pty = await sandbox.pty.create({
    env,
    onOutput: (data) => {
      seen += text(data)
    },
  })
  await pty.send('shopt -q login_shell && echo "is a $((1)) login shell"; exit 6\r')
  assert.equal(await pty.done, 6)
  assert.match(seen, /is a 1 login shell/)
  await pty.close() // it has ended by itself
  const other = await sandbox.pty.create({ env })
  await other.close()
  await other.close()
  await sandbox.exec.attach(other.processId).then((session) => session.done)
})

test('a command and a terminal end when their client has left for too long', async () => {
  const maxRunAfterDisconnect = '50ms'
  const session = await sandbox.exec.start('sleep 600', { maxRunAfterDisconnect })
  const pty = await sandbox.pty.create({ command: 'sleep 600', maxRunAfterDisconnect })
  const alone = await sandbox.exec.spawn('sleep 600', { maxRunAfterDisconnect })
  session.close()
  pty.detach()
  await assert.rejects(session.sendStdin('late'), { code: 'invalid_state', message: /is closed/ })
  for (const id of [session.processId, pty.processId]) {
    await until(async () => (await sandbox.exec.get(id)).jobStatus === 'cancelled')
  }
  assert.equal((await sandbox.exec.get(alone.id)).jobStatus, 'running')
  await sandbox.exec.kill(alone.id)
})

/** Breaks the connection; the next one waits at the door. */
function breakOff(proxy: TestProxy) {
  const door = proxy.hold()
  proxy.cutSockets()
  return door
}
