import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { type AttachServerMessage, attachServerMessage, type ErrorBody, newId } from '@islet/contract'
import { type ClientOptions, WebSocket } from 'ws'
import { startTestApi, TEST_KEY, type TestApi, until } from './testing.ts'

const AUTHORIZED: ClientOptions = { headers: { authorization: `Bearer ${TEST_KEY}` } }

/** A client that writes down what it sees. */
class Client {
  readonly socket: WebSocket
  readonly messages: AttachServerMessage[] = []
  readonly bytes: Buffer[] = []
  readonly closed: Promise<number>

  constructor(url: string, protocols: string[] = [], options: ClientOptions = AUTHORIZED) {
    this.socket = new WebSocket(url, protocols, options)
    this.closed = once(this.socket, 'close').then(([code]) => code as number)
    this.socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.bytes.push(data)
      else this.messages.push(attachServerMessage.parse(JSON.parse(data.toString())))
    })
  }

  get types(): string[] {
    return this.messages.map(({ type }) => type)
  }

  text(channel: number): string {
    return Buffer.concat(
      this.bytes.filter((frame) => frame[0] === channel).map((frame) => frame.subarray(1)),
    ).toString()
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message))
  }

  async error(): Promise<{ code: string | undefined; closed: number }> {
    const closed = await this.closed
    const last = this.messages.at(-1)
    return { code: last?.type === 'error' ? last.error.code : undefined, closed }
  }
}

describe('an attached client', () => {
  let api: TestApi
  let sandboxId: string
  before(async () => {
    api = await startTestApi()
    sandboxId = (await api.control.create({})).id
  })
  after(() => api[Symbol.asyncDispose]())

  const start = async (command: string, terminal?: { cols: number; rows: number }) =>
    (await api.processes.start(sandboxId, { command, stdin: true, ...(terminal && { terminal }) })).id
  const urlOf = (id: string, query = '') =>
    `${api.url.replace('http', 'ws')}/v1/sandboxes/${sandboxId}/processes/${id}/attach${query}`
  const opened = async (client: Client) => {
    await until(() => client.types.includes('replay-end'))
    return client
  }

  it('gets the process, what it printed, what it prints, and its end', async () => {
    const id = await start('cat')
    api.processes.print(id, Buffer.from('before '))
    const client = await opened(new Client(urlOf(id)))
    assert.equal(client.text(1), 'before ')
    api.processes.print(id, Buffer.from('after'))
    api.processes.print(id, Buffer.from('oops'), 'stderr')
    api.processes.end(id)
    assert.equal(await client.closed, 1000)
    assert.deepEqual(client.types, ['start', 'replay-end', 'exit'])
    assert.deepEqual([client.text(1), client.text(2)], ['before after', 'oops'])
    assert.equal(api.processes.attached, 0)
  })

  it('gets all of it also when the process has ended', async () => {
    const client = new Client(urlOf(await start('echo done')))
    assert.equal(await client.closed, 1000)
    assert.deepEqual(client.types, ['start', 'replay-end', 'exit'])
    assert.equal(client.text(1), 'done')
  })

  it('may leave out what was printed before', async () => {
    const id = await start('cat')
    api.processes.print(id, Buffer.from('before'))
    const client = new Client(urlOf(id, '?replay=false'))
    await until(() => client.types.includes('start') && api.processes.attached === 1)
    api.processes.print(id, Buffer.from('after'))
    api.processes.end(id)
    await client.closed
    assert.equal(client.text(1), 'after')
  })

  it('writes stdin, resizes and signals', async () => {
    const id = await start('cat', { cols: 80, rows: 24 })
    const client = await opened(new Client(urlOf(id)))
    client.socket.send(Buffer.from([0, 255, 1]))
    client.send({ type: 'resize', cols: 10, rows: 20 })
    client.send({ type: 'signal', signal: 'SIGINT' })
    client.send({ type: 'stdin-end' })
    assert.equal(await client.closed, 1000)
    assert.deepEqual(Buffer.concat(client.bytes), Buffer.from([1, 0, 255, 1]))
    const running = api.processes.running.get(id)!
    assert.deepEqual([running.sizes, running.signals], [[{ cols: 10, rows: 20 }], [2]])
  })

  it('is not alone: all of them see the same', async () => {
    const id = await start('cat')
    const clients = await Promise.all(Array.from({ length: 5 }, () => opened(new Client(urlOf(id)))))
    clients[0]!.socket.send(Buffer.from('shared'))
    clients[1]!.send({ type: 'stdin-end' })
    await Promise.all(clients.map((client) => client.closed))
    assert.deepEqual(
      clients.map((client) => client.text(1)),
      Array(5).fill('shared'),
    )
  })

  it('leaves the process running when it goes away, cleanly or not', async () => {
    const id = await start('cat')
    for (const leave of ['close', 'terminate'] as const) {
      const client = await opened(new Client(urlOf(id)))
      assert.equal(api.processes.attached, 1)
      client.socket[leave]()
      await until(() => api.processes.attached === 0)
    }
    assert.equal(api.processes.running.get(id)?.info.status, 'running')
    api.processes.end(id)
  })

  it('makes the process wait when it does not read', async () => {
    const id = await start('cat')
    const client = await opened(new Client(urlOf(id)))
    client.socket.pause()
    const chunk = Buffer.alloc(1024 * 1024)
    let taken = 0
    const attachment = api.processes.running.get(id)!
    attachment.events.push(
      ...Array.from(
        { length: 64 },
        () =>
          ({
            type: 'output',
            channel: 'stdout',
            get bytes() {
              taken++
              return chunk
            },
          }) as never,
      ),
    )
    api.processes.print(id, Buffer.from('end'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.ok(taken < 64 * 2, `${taken} reads of 64 chunks`)
    client.socket.resume()
    api.processes.end(id)
    assert.equal(await client.closed, 1000)
    assert.equal(Buffer.concat(client.bytes).length, 64 * (chunk.length + 1) + 4)
  })

  it('has to wait when the process does not read', async () => {
    const id = await start('cat')
    const gate = Promise.withResolvers<void>()
    api.processes.stdinGate = gate.promise
    const client = await opened(new Client(urlOf(id)))
    const chunk = Buffer.alloc(512 * 1024)
    for (let index = 0; index < 64; index++) client.socket.send(chunk)
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.ok(client.socket.bufferedAmount > 0)
    gate.resolve()
    client.send({ type: 'stdin-end' })
    assert.equal(await client.closed, 1000)
    assert.equal(Buffer.concat(client.bytes).length - client.bytes.length, 64 * chunk.length)
    api.processes.stdinGate = Promise.resolve()
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
      const client = await opened(new Client(urlOf(id)))
      client.socket.send(message)
      const error = await client.error()
      assert.equal(error.closed, closed, String(message))
      assert.ok(error.code === 'bad_request' || error.code === 'invalid_state')
    }
    const client = await opened(new Client(urlOf(id)))
    client.socket.send(Buffer.alloc(1024 * 1024 + 1))
    assert.equal(await client.closed, 1009)
    await until(() => api.processes.attached === 0)
    api.processes.end(id)
  })

  it('may type on while the process ends', async () => {
    const id = await start('cat')
    const client = await opened(new Client(urlOf(id)))
    api.processes.isTakingInput = false
    client.socket.send(Buffer.from('late'))
    client.send({ type: 'resize', cols: 1, rows: 1 })
    client.socket.ping()
    await once(client.socket, 'pong')
    api.processes.end(id)
    assert.equal(await client.closed, 1000)
    assert.equal(client.types.at(-1), 'exit')
    api.processes.isTakingInput = true
  })

  it('is told when the attachment fails, without what the server keeps to itself', async () => {
    const id = await start('cat')
    const attach = api.processes.attach.bind(api.processes)
    api.processes.attach = async (...args) => ({
      ...(await attach(...args)),
      // biome-ignore lint/correctness/useYield: it fails before
      async *[Symbol.asyncIterator]() {
        throw new Error('a secret inside')
      },
    })
    const client = new Client(urlOf(id))
    assert.deepEqual(await client.error(), { code: 'internal', closed: 1011 })
    assert.doesNotMatch(JSON.stringify(client.messages), /secret/)
    api.processes.attach = attach
  })

  async function refused(url: string, protocols: string[] = [], options: ClientOptions = AUTHORIZED) {
    const socket = new WebSocket(url, protocols, options)
    const [request, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    void request
    const { error } = JSON.parse(Buffer.concat(chunks).toString()) as ErrorBody
    return { status: response.statusCode, code: error.code, headers: response.headers }
  }

  it('without the key is refused before the handshake', async () => {
    const url = urlOf(await start('cat'))
    const none = await refused(url, [], {})
    assert.deepEqual([none.status, none.code], [401, 'unauthorized'])
    assert.ok(none.headers['www-authenticate'])
    assert.equal((await refused(url, [], { headers: { authorization: 'Bearer x' } })).status, 401)
    assert.equal((await refused(url, ['islet.bearer.wrong'], {})).status, 401)
    assert.equal((await refused(`${url}?key=${TEST_KEY}`, [], {})).status, 401)
    assert.equal(api.processes.attached, 0)
  })

  it('of a browser sends the key as a protocol', async () => {
    const id = await start('cat')
    const client = await opened(new Client(urlOf(id), ['islet', `islet.bearer.${TEST_KEY}`], {}))
    assert.equal(client.socket.protocol, 'islet')
    const alone = await opened(new Client(urlOf(id), [`islet.bearer.${TEST_KEY}`], {}))
    assert.equal(alone.socket.protocol, `islet.bearer.${TEST_KEY}`)
    api.processes.end(id)
    await Promise.all([client.closed, alone.closed])
  })

  it('meets the errors of any request when it asks for what is not there', async () => {
    const id = await start('cat')
    assert.equal((await refused(urlOf(newId('process')))).code, 'process_not_found')
    assert.equal((await refused(urlOf(id).replace(sandboxId, newId('sandbox')))).code, 'sandbox_not_found')
    assert.equal((await refused(urlOf('x'))).code, 'process_not_found')
    assert.equal((await refused(urlOf(id, '?nope=1'))).code, 'bad_request')
    assert.equal((await refused(`${api.url.replace('http', 'ws')}/v1/nope`)).code, 'route_not_found')
    assert.equal((await refused(`${api.url.replace('http', 'ws')}/v1/sandboxes`)).code, 'bad_request')
    const foreign = { headers: { ...AUTHORIZED.headers, host: 'evil.example' } }
    assert.equal((await refused(urlOf(id), [], foreign)).code, 'forbidden')
    assert.equal(api.processes.attached, 0)
    api.processes.end(id)
  })

  it('is sent away when the server closes', async () => {
    const other = await startTestApi()
    const { id: sandbox } = await other.control.create({})
    const { id } = await other.processes.start(sandbox, { command: 'cat' })
    const client = await opened(new Client(`${other.url}/v1/sandboxes/${sandbox}/processes/${id}/attach`))
    await other.served.close({ timeoutMs: 10_000 })
    assert.equal(await client.closed, 1001)
    await until(() => other.processes.attached === 0)
  })
})
