import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebSocket as NodeWebSocket } from 'ws'
import { PROCESS, RESULT, SANDBOX, startStub } from '../test/stub.ts'
import { Client } from './client.ts'
import { hasCode, Sandbox, type SocketConstructor } from './index.ts'

const apiKey = 'test-key-test-key'
const start = (outputBytes = 0, truncated = false) =>
  JSON.stringify({ type: 'start', process: { ...PROCESS, outputBytes }, truncated })
const replayEnd = JSON.stringify({ type: 'replay-end' })
const exit = (exitCode = 0) => JSON.stringify({ type: 'exit', ...RESULT, exitCode })
const output = (channel: number, text: string) => Buffer.concat([Buffer.from([channel]), Buffer.from(text)])

const implementations: [string, SocketConstructor | undefined][] = [
  ["the platform's WebSocket", undefined],
  ['the one of ws', NodeWebSocket as unknown as SocketConstructor],
]
for (const [name, WebSocket] of implementations) {
  test(`a started command is followed to its exit code with ${name}`, async () => {
    const received: string[] = []
    await using stub = await startStub(
      () => ({ status: 201, json: PROCESS }),
      (socket, request) => {
        assert.match(request.headers['sec-websocket-protocol'] ?? '', /^islet, ?islet\.bearer\.test-key/)
        socket.on('message', (data, isBinary) => {
          received.push(isBinary ? `bytes ${data}` : String(data))
          if (String(data) === '{"type":"stdin-end"}') {
            socket.send(output(1, 'out'))
            socket.send(output(2, 'err'))
            socket.send(exit(3))
          }
        })
        socket.send(start())
        socket.send(replayEnd)
      },
    )
    const sandbox = connected(stub.url, WebSocket)
    const seen: string[] = []
    const session = await sandbox.exec.start('cat', {
      args: ['-n'],
      onStdout: async (data) => void seen.push(`stdout ${new TextDecoder().decode(data)}`),
      onStderr: (data) => void seen.push(`stderr ${new TextDecoder().decode(data)}`),
      onExit: (code) => void seen.push(`exit ${code}`),
      onScrollbackEnd: () => void seen.push('scrollback end'),
    })
    await session.sendStdin('hello')
    session.closeStdin()
    assert.equal(await session.done, 3)
    assert.deepEqual(received, ['bytes hello', '{"type":"stdin-end"}'])
    assert.deepEqual(seen, ['scrollback end', 'stdout out', 'stderr err', 'exit 3'])
    assert.deepEqual(JSON.parse(stub.asked[0]!.body), { command: ['cat', '-n'], stdin: true })
  })
}

test('a connection that breaks is opened again and every byte is given once', async () => {
  const text = 'abcdefghij'
  await using stub = await startStub(
    () => ({ status: 201, json: PROCESS }),
    (socket, _request, count) => {
      if (count === 1) {
        socket.send(start(2))
        socket.send(output(1, text.slice(0, 2)))
        socket.send(replayEnd)
        socket.send(output(1, text.slice(2, 5)), () => socket.terminate())
      } else {
        socket.send(start(8))
        socket.send(output(1, text.slice(0, 4)))
        socket.send(output(1, text.slice(4, 8)))
        socket.send(replayEnd)
        socket.send(output(1, text.slice(8)))
        socket.send(exit())
      }
    },
  )
  let seen = ''
  const session = await connected(stub.url).exec.start('x', {
    onStdout: (data) => {
      seen += new TextDecoder().decode(data)
    },
  })
  assert.equal(await session.done, 0)
  assert.equal(seen, text)
  assert.equal(session.truncated, false)
})

test('what is typed while the connection is being made again arrives afterwards, in order', async () => {
  const received: string[] = []
  const isBack = Promise.withResolvers<void>()
  const isTyped = Promise.withResolvers<void>()
  await using stub = await startStub(
    () => ({ status: 201, json: PROCESS }),
    async (socket, _request, count) => {
      socket.on('message', (data) => {
        received.push(String(data))
        if (received.length === 3) socket.send(exit())
      })
      if (count > 1) {
        isBack.resolve()
        await isTyped.promise
      }
      socket.send(start())
      socket.send(replayEnd)
      if (count === 1) setImmediate(() => socket.terminate())
    },
  )
  const session = await connected(stub.url).exec.start('cat')
  await isBack.promise
  const typed = [session.sendStdin('one'), session.sendStdin('two')]
  session.closeStdin()
  isTyped.resolve()
  await Promise.all(typed)
  assert.equal(await session.done, 0)
  assert.deepEqual(received, ['one', 'two', '{"type":"stdin-end"}'])
})

test('attaching to a process that does not exist says so', async () => {
  const json = { error: { code: 'process_not_found', message: 'None.', retryable: false } }
  await using stub = await startStub(() => ({ status: 404, json }))
  await assert.rejects(connected(stub.url).exec.attach(PROCESS.id), (error) =>
    hasCode(error, 'process_not_found'),
  )
})

test('closing a session rejects what is awaited and leaves the process alone', async () => {
  await using stub = await startStub(
    () => ({ status: 201, json: PROCESS }),
    (socket) => socket.send(start()),
  )
  const session = await connected(stub.url).exec.start('sleep 60')
  session.close()
  session.close()
  await assert.rejects(session.done, { name: 'AbortError' })
  assert.equal(stub.asked.length, 1)
})

test('aborting ends an attached session', async () => {
  await using stub = await startStub(
    () => ({ json: PROCESS }),
    (socket) => socket.send(start()),
  )
  const abort = new AbortController()
  const session = await connected(stub.url).exec.attach(PROCESS.id, { signal: abort.signal })
  abort.abort()
  await assert.rejects(session.done, { name: 'AbortError' })
})

test('an error of the server ends the session with its code', async () => {
  await using stub = await startStub(
    () => ({ json: PROCESS }),
    (socket) => {
      socket.send(start())
      socket.send(JSON.stringify({ type: 'error', error: { code: 'sandbox_lost', message: 'Gone.' } }))
    },
  )
  const session = await connected(stub.url).exec.attach(PROCESS.id)
  await assert.rejects(session.done, (error) => hasCode(error, 'sandbox_lost'))
})

test('a terminal is asked for with its size, typed into and resized', async () => {
  const received: string[] = []
  await using stub = await startStub(
    () => ({ status: 201, json: { ...PROCESS, terminal: true } }),
    (socket) => {
      socket.on('message', (data, isBinary) => {
        received.push(isBinary ? `bytes ${data}` : String(data))
        if (received.length === 2) socket.send(exit())
      })
      socket.send(start())
    },
  )
  const pty = await connected(stub.url).pty.create({ cols: 100, rows: 30 })
  await pty.send('ls\r')
  pty.resize(120, 40)
  assert.equal(await pty.done, 0)
  assert.deepEqual(received, ['bytes ls\r', '{"type":"resize","cols":120,"rows":40}'])
  const asked = JSON.parse(stub.asked[0]!.body)
  assert.deepEqual(asked.terminal, { cols: 100, rows: 30 })
  assert.match(asked.command, /bash -l/)
})

function connected(url: string, WebSocket?: SocketConstructor): Sandbox {
  return new Sandbox(new Client({ url, apiKey, WebSocket }), { ...SANDBOX })
}
