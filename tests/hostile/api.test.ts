// Attacks with one token: answers that are not read, output that grows when encoded, bodies that take long to parse.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import { say } from '../support/shell.ts'
import type { Suite } from '../support/suite.ts'
import { eachIsolation, SAME_IN_BOTH } from './attack.ts'

const MIB = 1024 ** 2
const FILES = 100_000
const UNREAD_LISTS = 90
const NULS = 64 * MIB
const OUTPUTS = 2
const BODIES = 4
const DOWNLOADS = 100
const GUESSES = 2000
const AT_ONCE = 50
const STREAMS = 60
const WEBSOCKET = [
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n',
  `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n`,
].join('')
/** No description of a sandbox is as long. */
const LARGE = 2 * MIB

await eachIsolation({ area: 'API', isolations: SAME_IN_BOTH }, (target) => {
  test('lists that nobody reads do not fill the server', async () => {
    await using sandbox = await target.suite.create()
    const make = `mkdir many && cd many && perl -e 'for (1..${FILES}) { open F, ">", $_; close F }'`
    await say(sandbox, make, { cwd: '/dev/shm', timeout: '120s' })
    const call = await asToken(target.suite, sandbox)
    await target.attack('file lists of 100,000 names that nobody reads', UNREAD_LISTS, async () => {
      const path = `/v1/sandboxes/${sandbox.id}/files/list?path=/dev/shm/many&limit=${FILES}`
      const unread = await Promise.all(
        Array.from({ length: UNREAD_LISTS }, () => ask(target.suite, call.token, path)),
      )
      await sleep(2000)
      for (const socket of unread) socket.destroy()
      const { length } = await until(() => sandbox.files.list('/dev/shm/many', { limit: FILES }))
      assert.equal(length, FILES)
    })
  })

  test('output of NULs, which JSON writes as six characters each, does not stall the server', async () => {
    await using sandbox = await target.suite.create()
    const print = async () => {
      const body = { command: `head -c ${NULS} /dev/zero`, maxOutputBytes: NULS }
      const response = await target.suite.server.post(`/v1/sandboxes/${sandbox.id}/exec`, body)
      assert.equal(response.status, 200)
      let bytes = 0
      for await (const chunk of response.body!) bytes += chunk.length
      assert.ok(bytes > 6 * NULS, `${bytes} bytes of JSON`)
    }
    await target.attack('64 MiB of NULs as the output of commands at once', OUTPUTS, () =>
      Promise.all(Array.from({ length: OUTPUTS }, print)),
    )
  })

  test('files and archives that nobody reads do not fill the server, and packing them leaves time for others', async () => {
    await using sandbox = await target.suite.create()
    await say(sandbox, 'mkdir big && head -c 24M /dev/urandom > big/file')
    const call = await asToken(target.suite, sandbox)
    const paths = { downloads: 'files?path=big/file', archives: 'files/archive?path=big' }
    for (const [name, path] of Object.entries(paths))
      await target.attack(`${name} that nobody reads`, DOWNLOADS, async () => {
        const url = `/v1/sandboxes/${sandbox.id}/${path}`
        const unread = await Promise.all(
          Array.from({ length: DOWNLOADS }, () => ask(target.suite, call.token, url)),
        )
        await sleep(3000)
        for (const socket of unread) socket.destroy()
      })
    await target.attack('archives that are read at once', BODIES, () =>
      Promise.all(
        Array.from({ length: BODIES }, async () => {
          const response = await call('GET', '/files/archive?path=big')
          assert.equal(response.status, 200)
          let bytes = 0
          for await (const chunk of response.body!) bytes += chunk.length
          assert.ok(bytes > 24 * MIB, `${bytes} bytes`)
        }),
      ),
    )
  })

  test('clients who do not read what a process prints do not fill the server', async () => {
    await using sandbox = await target.suite.create()
    const call = await asToken(target.suite, sandbox)
    const { id } = await sandbox.exec.spawn('exec yes')
    await target.attack('clients attached to endless output who do not read', DOWNLOADS, async () => {
      const path = `/v1/sandboxes/${sandbox.id}/processes/${id}/attach`
      const unread = await Promise.all(
        Array.from({ length: DOWNLOADS }, () => ask(target.suite, call.token, path, WEBSOCKET)),
      )
      await sleep(3000)
      for (const socket of unread) socket.destroy()
    })
    await target.attack(
      'clients of streamed commands and readers of URLs who do not read',
      STREAMS,
      async () => {
        const { pathname, search } = new URL(await sandbox.exec.streamUrl(id))
        const exec = { path: `/v1/sandboxes/${sandbox.id}/exec`, body: { command: 'exec yes', stream: true } }
        const unread = await Promise.all(
          Array.from({ length: STREAMS }, (_, n) =>
            n % 2 === 0
              ? ask(target.suite, call.token, pathname + search)
              : ask(target.suite, call.token, exec.path, bodyOf(exec.body)),
          ),
        )
        await sleep(3000)
        for (const socket of unread) socket.destroy()
        await until(async () => assert.equal((await sandbox.exec.list({ status: 'running' })).length, 1))
      },
    )
  })

  if (target.isolation === 'gvisor') return

  test('bodies that would take seconds to read are refused at once', async () => {
    await using sandbox = await target.suite.create()
    const call = await asToken(target.suite, sandbox)
    const members = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`key-${n}`, n]))
    const bodies = {
      'a patch of 14 MB': JSON.stringify({ metadata: members(700_000) }),
      'a patch of many members': JSON.stringify({ metadata: members(15_000) }),
      'a patch of unknown members': JSON.stringify(members(15_000)),
      'a deep patch': `{"metadata":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
      'a patch of empty lists': `{"metadata":{"a":[${'[],'.repeat(80_000)}0]}}`,
    }
    for (const [name, body] of Object.entries(bodies))
      await target.attack(name, BODIES, async () => {
        const sent = Array.from({ length: BODIES }, () => call('PATCH', '', body))
        // Before it is parsed, if its size alone says so.
        const refusals = body.length > LARGE ? [413, 429] : [400, 429]
        for (const { status } of await Promise.all(sent)) assert.ok(refusals.includes(status), `${status}`)
      })
    const large = JSON.stringify({ command: 'wc -c', stdin: 'x'.repeat(8 * MIB) })
    await target.attack('the largest bodies at once', BODIES, async () => {
      const sent = Array.from({ length: BODIES }, () => call('POST', '/exec', large))
      const statuses = (await Promise.all(sent)).map(({ status }) => status)
      assert.ok(statuses.includes(200), statuses.join(' '))
      assert.ok(
        statuses.every((status) => status === 200 || status === 429),
        statuses.join(' '),
      )
    })
  })

  test('guesses of session tokens and magic links are refused without work for the server', async () => {
    const { server } = target.suite
    await using sandbox = await target.suite.create()
    const guess = () => `st_${randomBytes(32).toString('base64url')}`
    await target.attack('guesses of session tokens and magic links', GUESSES, async () => {
      for (let n = 0; n < GUESSES; n += AT_ONCE)
        await Promise.all(
          Array.from({ length: AT_ONCE }, async (_, i) => {
            const headers = { Authorization: `Bearer ${guess()}` }
            const asked =
              i % 2 === 0
                ? await fetch(`${server.url}/v1/sandboxes/${sandbox.id}`, { headers })
                : await fetch(`${server.url}/auth/magic/${guess().slice(3)}`, { redirect: 'manual' })
            assert.equal(asked.status, i % 2 === 0 ? 401 : 404)
            await asked.body?.cancel()
          }),
        )
    })
    assert.deepEqual(await sandbox.sessionTokens.list(), [])
  })

  test('long commands are listed without being held in memory', async () => {
    await using sandbox = await target.suite.create()
    const argument = 'x'.repeat(120_000)
    const command = ['true', argument, argument, argument, argument]
    for (let n = 0; n < 50; n++) await sandbox.exec.run(command)
    const call = await asToken(target.suite, sandbox)
    await target.attack('lists of processes with long commands', BODIES, async () => {
      const path = `/v1/sandboxes/${sandbox.id}/processes?limit=1000`
      const unread = await Promise.all(
        Array.from({ length: BODIES }, () => ask(target.suite, call.token, path)),
      )
      const { processes } = JSON.parse(await (await call('GET', '/processes?limit=1000')).text())
      assert.equal(processes.length, 50)
      for (const socket of unread) socket.destroy()
    })
  })
})

type Call = ((method: string, path: string, body?: string) => Promise<Response>) & { token: string }

async function asToken({ server }: Suite, sandbox: Sandbox): Promise<Call> {
  const { token } = await sandbox.getToken()
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const call = (method: string, path: string, body?: string) =>
    server.fetch(`/v1/sandboxes/${sandbox.id}${path}`, { method, headers, body })
  return Object.assign(call, { token })
}

/** The headers of a JSON body, and the body. */
function bodyOf(value: object): string {
  const text = JSON.stringify(value)
  return `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}

/** A request whose answer is not read. With a body it is a POST. */
async function ask({ server }: Suite, token: string, path: string, headers = ''): Promise<Socket> {
  const { hostname, port, host } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.pause()
  const method = headers.includes('\r\n\r\n') ? 'POST' : 'GET'
  socket.write(
    `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n${headers}\r\n`,
  )
  return socket
}

/** Memory that is held for clients who left is free a moment later. */
async function until<T>(work: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + 30_000; ; await sleep(100)) {
    try {
      return await work()
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
  }
}
