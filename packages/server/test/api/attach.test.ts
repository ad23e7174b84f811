import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import type { Sandbox, StartProcess } from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { Client } from '../support/client.ts'
import { parentOf, settled, startTestApi, type TestApi, until } from '../support/server.ts'

const MEBIBYTE = 1024 * 1024

describe('an attached client', () => {
  let api: TestApi
  let sandbox: Sandbox
  before(async () => {
    api = await startTestApi()
    sandbox = await api.createSandbox()
  })
  after(() => api[Symbol.asyncDispose]())

  const start = async (command: string, more: Partial<StartProcess> = {}) =>
    (await api.start(sandbox.id, { command, stdin: more.terminal === undefined, ...more })).id
  const urlOf = (id: string, query = '', of = sandbox) =>
    `${api.url.replace('http', 'ws')}/v1/sandboxes/${of.id}/processes/${id}/attach${query}`
  const printed = (id: string, bytes: number) =>
    until(async () => (await api.process(sandbox.id, id)).outputBytes >= bytes)
  const end = (id: string) => api.call('DELETE', `/v1/sandboxes/${sandbox.id}/processes/${id}`)

  it('gets the process, what it printed, what it prints, and its end', async () => {
    const id = await start('printf before; read line; printf after; printf oops >&2; exit 3')
    await printed(id, 6)
    const client = await Client.open(urlOf(id))
    assert.equal(client.text(1), 'before')
    client.socket.send(Buffer.from('go\n'))
    assert.equal(await client.exitCode(), 3)
    assert.equal(await client.closed, 1000)
    assert.deepEqual(client.types, ['start', 'replay-end', 'exit'])
    assert.deepEqual([client.text(1), client.text(2)], ['beforeafter', 'oops'])
  })

  it('gets all of it also when the process has ended', async () => {
    const id = await start('echo done; exit 7')
    await until(async () => (await api.process(sandbox.id, id)).status === 'exited')
    const client = new Client(urlOf(id))
    assert.equal(await client.exitCode(), 7)
    assert.deepEqual(client.types, ['start', 'replay-end', 'exit'])
    assert.equal(client.text(1), 'done\n')
    const late = new Client(urlOf(id, '?replay=false'))
    assert.equal(await late.exitCode(), 7)
    assert.equal(late.text(1), '')
  })

  it('may leave out what was printed before', async () => {
    const id = await start('printf before; read line; printf after')
    await printed(id, 6)
    const client = await Client.open(urlOf(id, '?replay=false'))
    client.socket.send(Buffer.from('go\n'))
    await client.closed
    assert.equal(client.text(1), 'after')
  })

  it('writes any bytes to stdin, and ends it', async () => {
    const client = await Client.open(urlOf(await start('cat')))
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
    client.socket.send(bytes)
    client.send({ type: 'stdin-end' })
    assert.equal(await client.exitCode(), 0)
    assert.deepEqual(client.output(1), bytes)
  })

  it('resizes the terminal', async () => {
    const command = 'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.01; done'
    const id = await start(command, { terminal: { cols: 80, rows: 24 } })
    const client = await Client.open(urlOf(id))
    await until(() => client.text(1).includes('ready'))
    client.send({ type: 'resize', cols: 10, rows: 20 })
    await client.closed
    assert.match(client.text(1), /20 10/)
  })

  it('signals the process', async () => {
    const id = await start('trap "exit 5" INT; echo ready; while :; do sleep 0.01; done')
    const client = await Client.open(urlOf(id))
    await until(() => client.text(1) === 'ready\n')
    client.send({ type: 'signal', signal: 'SIGINT' })
    assert.equal(await client.exitCode(), 5)
  })

  it('is not alone: all of them see the same', async () => {
    const id = await start('cat')
    const clients = await Promise.all(Array.from({ length: 5 }, () => Client.open(urlOf(id))))
    clients[0]!.socket.send(Buffer.from('shared'))
    await Promise.all(clients.map((client) => until(() => client.text(1) === 'shared')))
    clients[1]!.send({ type: 'stdin-end' })
    assert.deepEqual(await Promise.all(clients.map((client) => client.exitCode())), Array(5).fill(0))
  })

  it('leaves the process running when it goes away, cleanly or not', async () => {
    const id = await start('cat')
    for (const leave of ['close', 'terminate'] as const) {
      const client = await Client.open(urlOf(id))
      client.socket[leave]()
      await client.closed
    }
    const last = await Client.open(urlOf(id))
    last.socket.send(Buffer.from('still there'))
    await until(() => last.text(1) === 'still there')
    await end(id)
    assert.equal(await last.exitCode(), 137)
  })

  it('makes the process wait when it does not read, and then misses nothing', async () => {
    const size = 32 * MEBIBYTE
    const id = await start(`head -c ${size} /dev/zero; echo end >&2`, { hold: true })
    const client = await Client.open(urlOf(id))
    client.socket.pause()
    const waiting = await settled(async () => (await api.process(sandbox.id, id)).outputBytes)
    assert.ok(waiting < size, `${waiting} of ${size} bytes were taken from the process`)
    assert.equal((await api.process(sandbox.id, id)).status, 'running')
    client.socket.resume()
    assert.equal(await client.exitCode(), 0)
    assert.equal(client.output(1).length, size)
    assert.equal(client.text(2), 'end\n')
  })

  it('that does not read holds nobody once it is gone', async () => {
    const id = await start(`head -c ${32 * MEBIBYTE} /dev/zero; cat gate; echo end`, { hold: true })
    const gate = makeGate(sandbox)
    const client = await Client.open(urlOf(id))
    client.socket.pause()
    await settled(async () => (await api.process(sandbox.id, id)).outputBytes)
    client.socket.terminate()
    const other = await Client.open(urlOf(id, '?replay=false'))
    await (await gate.reached()).open()
    assert.equal(await other.exitCode(), 0)
    assert.match(other.text(1).slice(-4), /end/)
  })

  it('has to wait when the process does not read, and then nothing is missing', async () => {
    const gate = makeGate(sandbox, 'slow')
    const client = await Client.open(urlOf(await start('cat slow; wc -c')))
    const slow = await gate.reached()
    const chunk = Buffer.alloc(MEBIBYTE / 2)
    for (let index = 0; index < 64; index++) client.socket.send(chunk)
    const waiting = await settled(() => client.socket.bufferedAmount)
    assert.ok(waiting > 0)
    await slow.open()
    client.send({ type: 'stdin-end' })
    assert.equal(await client.exitCode(), 0)
    assert.equal(Number(client.text(1)), 64 * chunk.length)
  })

  it('may type on when the process takes no more input', async () => {
    const gate = makeGate(sandbox, 'deaf')
    const client = await Client.open(urlOf(await start('exec <&-; cat deaf; echo bye')))
    const deaf = await gate.reached()
    for (const text of ['late', 'later']) client.socket.send(Buffer.from(text))
    client.send({ type: 'stdin-end' })
    client.socket.ping()
    await once(client.socket, 'pong')
    await deaf.open()
    assert.equal(await client.exitCode(), 0)
    assert.equal(client.text(1), 'bye\n')
  })

  it('is told what is wrong with its messages and closed', async () => {
    const id = await start('cat')
    const cases: [string | Buffer, number][] = [
      ['hello', 1003],
      ['{"type":"nope"}', 1008],
      ['{"type":"resize","cols":0,"rows":1}', 1008],
      ['{"type":"stdin-end","more":1}', 1008],
      ['[]', 1008],
      ['{"type":"signal","signal":"SIGNOPE"}', 4400],
      ['{"type":"resize","cols":1,"rows":1}', 4409],
    ]
    for (const [message, closed] of cases) {
      const client = await Client.open(urlOf(id))
      client.socket.send(message)
      const error = await client.error()
      assert.equal(error.closed, closed, String(message))
      assert.ok(error.code === 'bad_request' || error.code === 'invalid_state')
    }
    const client = await Client.open(urlOf(id))
    client.socket.send(Buffer.alloc(MEBIBYTE + 1))
    assert.equal(await client.closed, 1009)
    assert.equal((await api.process(sandbox.id, id)).status, 'running')
    await end(id)
  })

  it('is told when the sandbox is deleted, and when it dies', async () => {
    for (const finish of ['delete', 'kill']) {
      const other = await api.createSandbox()
      const { id, pid } = await api.start(other.id, { command: 'cat', stdin: true })
      const client = await Client.open(urlOf(id, '', other))
      if (finish === 'delete') await api.call('DELETE', `/v1/sandboxes/${other.id}`)
      else process.kill(parentOf(pid!), 'SIGKILL')
      assert.deepEqual(await client.error(), { code: 'sandbox_lost', closed: 1011 }, finish)
    }
  })
})
