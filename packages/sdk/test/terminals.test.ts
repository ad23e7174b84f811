import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@islet/contract/client'
import { makeGate } from '../../server/test/support/barrier.ts'
import { startTestApi, TEST_KEY, type TestApi, until } from '../../server/test/support/server.ts'
import { Client } from '../src/client/client.ts'
import { hasCode, Sandbox, type TerminalInstance } from '../src/index.ts'
import { startProxy } from './proxy.ts'

const apiKey = TEST_KEY
let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey })
})
after(() => api[Symbol.asyncDispose]())

/** The output and the events, in order. */
function follow(terminal: TerminalInstance) {
  const seen = { text: '', events: [] as string[] }
  terminal.on('output', (data) => {
    seen.text += data
  })
  terminal.on('error', (error) => void seen.events.push(`error ${(error as { code?: string }).code}`))
  terminal.on('destroyed', () => void seen.events.push('destroyed'))
  return seen
}

test('a pty is typed into, resized, and tells all its clients when it is destroyed', async () => {
  const pty = await sandbox.terminal.create({ pty: true, shell: '/bin/sh', cols: 100, rows: 30 })
  assert.deepEqual([pty.pty, pty.status, pty.isRunning(), pty.encoding], [true, 'running', true, 'raw'])
  assert.ok(pty.channel)
  const first = follow(pty)
  await pty.write('stty size; echo "é$((1+1))"\n')
  await until(() => first.text.includes('é2'))
  assert.match(first.text, /30 100/)
  for (const [cols, rows] of [
    [0, 24],
    [80, -1],
    [1.5, 24],
  ] as const)
    assert.throws(
      () => pty.resize(cols, rows),
      (error) => hasCode(error, 'bad_request'),
    )
  pty.resize(120, 40)
  const other = await sandbox.terminal.connect(pty.id)
  const second = follow(other)
  // The second client gets the kept output, then live output.
  await other.write('stty size; echo "now $((40+2))"\n')
  await until(() => first.text.includes('now 42') && second.text.includes('now 42'))
  assert.match(second.text, /30 100[\s\S]*é2[\s\S]*40 120/)
  await pty.destroy()
  await pty.destroy()
  await until(() => second.events.length > 0)
  assert.deepEqual([first.events, second.events], [['destroyed'], ['destroyed']])
  assert.deepEqual([pty.status, other.isRunning()], ['stopped', false])
  await other.destroy()
  await assert.rejects(sandbox.terminal.destroy(pty.id), (error) => hasCode(error, 'terminal_not_found'))
  await assert.rejects(sandbox.terminal.connect(pty.id), (error) => hasCode(error, 'terminal_not_found'))
})

test('a pty keeps running without a client, and the next client gets the output it missed', async () => {
  const gate = makeGate(await sandbox.getInfo())
  const pty = await sandbox.terminal.create({ pty: true, shell: '/bin/sh' })
  const gone = follow(pty)
  await pty.write('cat gate; echo "meanwhile $((1+1))"\n')
  const reached = await gate.reached()
  pty.disconnect()
  await reached.open()
  await using back = await sandbox.terminal.connect(pty.id)
  const seen = follow(back)
  await until(() => seen.text.includes('meanwhile 2'))
  assert.ok(!gone.text.includes('meanwhile 2'))
  assert.deepEqual(gone.events, [])
})

test('a pty whose connection breaks gives every byte once', async () => {
  await using proxy = await startProxy(api.url)
  const through = new Sandbox(new Client({ url: proxy.url, apiKey }), await sandbox.getInfo())
  await using pty = await through.terminal.create({ pty: true, shell: '/bin/sh' })
  const seen = follow(pty)
  const gate = makeGate(await sandbox.getInfo(), 'cut')
  await pty.write('seq 1 1500; cat cut; seq 1501 3000; echo e"n"d\n')
  const reached = await gate.reached()
  proxy.cutSockets()
  await reached.open()
  await until(() => seen.text.includes('end'))
  const lines = seen.text.split(/\r?\n/).filter((line) => /^\d+$/.test(line))
  assert.deepEqual(
    lines,
    Array.from({ length: 3000 }, (_, index) => `${index + 1}`),
  )
})

test('output comes as base64 when asked for, and what came before the first handler is not lost', async () => {
  await using pty = await sandbox.terminal.create({ pty: true, shell: '/bin/sh', encoding: 'base64' })
  await pty.write('printf "\\377\\376%s" x$((2+2))\n')
  const process = pty.processId!
  await until(async () => (await sandbox.exec.output(process)).stdout.includes('x4'))
  let bytes = Buffer.alloc(0)
  const handler = (data: string) => {
    bytes = Buffer.concat([bytes, Buffer.from(data, 'base64')])
  }
  pty.on('output', handler)
  await until(() => bytes.includes(Buffer.from([0xff, 0xfe, 0x78, 0x34])))
  pty.off('output', handler)
})

test('the end of the shell, and the end of the sandbox, are told', async () => {
  const pty = await sandbox.terminal.create({ pty: true, shell: '/bin/sh' })
  const seen = follow(pty)
  await pty.write('exit\n')
  await until(() => seen.events.length > 0)
  assert.deepEqual(seen.events, ['destroyed'])
  await assert.rejects(pty.write('too late\n'), { code: 'invalid_state', message: /has ended/ })
  pty.resize(90, 20)
  assert.equal((await sandbox.terminal.retrieve(pty.id)).status, 'stopped')
  assert.deepEqual(await sandbox.terminal.list(), [])
  const other = await Sandbox.create({ url: api.url, apiKey })
  const lost = follow(await other.terminal.create({ pty: true, shell: '/bin/sh' }))
  await other.kill()
  await until(() => lost.events.length > 1)
  assert.deepEqual(lost.events, ['error sandbox_lost', 'destroyed'])
})

test('a terminal without a pty runs commands to their end and gives their results', async () => {
  await using terminal = await sandbox.terminal.create()
  assert.deepEqual([terminal.pty, terminal.status, terminal.channel], [false, 'ready', null])
  const command = await terminal.command.run('echo out; echo err >&2; exit 2', { env: { A: 'b' } })
  assert.deepEqual(
    [command.status, command.exitCode, command.stdout, command.stderr, command.terminalId],
    ['failed', 2, 'out\n', 'err\n', terminal.id],
  )
  assert.ok(
    command.durationMs !== undefined && Date.parse(command.finishedAt!) >= Date.parse(command.startedAt),
  )
  const same = await terminal.command.retrieve(command.id)
  assert.deepEqual({ ...same }, { ...command })
  assert.deepEqual(
    (await terminal.command.list()).map(({ id }) => id),
    [command.id],
  )
  const info = await sandbox.terminal.list()
  assert.deepEqual([info.length, info[0]?.id], [1, terminal.id])
})

test('a terminal without a pty is stopped once it is destroyed, by whomever', async () => {
  const [own, shared, foreign] = await Promise.all([1, 2, 3].map(() => sandbox.terminal.create()))
  const seen = [own!, shared!, foreign!].map(follow)
  await own!.destroy()
  await sandbox.terminal.destroy(shared!.id)
  assert.deepEqual([own!.isRunning(), shared!.isRunning(), shared!.status], [false, false, 'stopped'])
  const other = await Sandbox.connect(sandbox.id, { url: api.url, apiKey })
  await other.terminal.destroy(foreign!.id)
  await assert.rejects(foreign!.command.list(), { code: 'terminal_not_found' })
  assert.equal(foreign!.isRunning(), false)
  assert.deepEqual(
    seen.map(({ events }) => events),
    [['destroyed'], ['destroyed'], ['destroyed']],
  )
})

test('the commands of a terminal give their output in its encoding', async () => {
  await using terminal = await sandbox.terminal.create({ encoding: 'base64' })
  const command = await terminal.command.run("printf '\\377\\376'; printf '\\375' >&2")
  const texts = [command.stdout, command.stderr]
  assert.deepEqual(texts, ['//4=', '/Q=='])
  const [listed] = await terminal.command.list()
  assert.deepEqual([listed!.stdout, listed!.stderr], texts)
})

test("the sandbox's execution timeout holds for commands in the foreground and in the background", async () => {
  await using limited = await Sandbox.create({ url: api.url, apiKey, timeout: { execution: 300 } })
  await using terminal = await limited.terminal.create()
  const timedOut = await terminal.command.run('sleep 600')
  assert.deepEqual([timedOut.status, timedOut.outcome, timedOut.exitCode], ['failed', 'timeout', 124])
  const background = await terminal.command.run('sleep 600', { background: true })
  assert.equal((await background.wait(60)).exitCode, 124)
  const own = await terminal.command.run('sleep 0.6; echo done', { timeout: 0 })
  assert.equal(own.stdout, 'done\n')
})

test('a command in the background is waited for, with and without a limit', async () => {
  await using terminal = await sandbox.terminal.create()
  const gate = makeGate(await sandbox.getInfo(), 'wait')
  const command = await terminal.command.run('echo begun; cat wait', { background: true })
  assert.deepEqual([command.status, command.exitCode, command.finishedAt], ['running', undefined, undefined])
  await assert.rejects(command.wait(0.05), (error) => hasCode(error, 'timeout'))
  await until(async () => (await command.refresh()).stdout === 'begun\n')
  assert.equal(command.status, 'running')
  await (await gate.reached()).open()
  assert.equal(await command.wait(), command)
  assert.deepEqual([command.status, command.exitCode], ['completed', 0])
})

test('aborting kills a command in the foreground, and aborting a wait does not', async () => {
  await using terminal = await sandbox.terminal.create()
  const abort = new AbortController()
  const running = terminal.command.run('sleep 600', { signal: abort.signal })
  await until(async () => (await terminal.command.list()).length === 1)
  abort.abort()
  await assert.rejects(running, { name: 'AbortError' })
  await until(async () => (await terminal.command.list())[0]!.exitCode === 137)
  const other = await terminal.command.run('sleep 600', { background: true })
  await assert.rejects(other.wait(0, { signal: AbortSignal.abort() }), { name: 'AbortError' })
  assert.equal((await other.refresh()).status, 'running')
})

test('each kind of terminal refuses what only the other can', async () => {
  const isMisuse = (error: unknown) => hasCode(error, 'invalid_state')
  await using pty = await sandbox.terminal.create({ pty: true, shell: '/bin/sh' })
  assert.throws(() => pty.command, isMisuse)
  await using plain = await sandbox.terminal.create()
  assert.throws(() => plain.write('x'), isMisuse)
  assert.throws(() => plain.resize(1, 1), isMisuse)
  await assert.rejects(plain.command.retrieve(newId('process')), (error) =>
    hasCode(error, 'process_not_found'),
  )
})
