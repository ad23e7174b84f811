// Previews through the real wall: the sandbox has a network of its own and no way out.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { get } from '../../packages/server/test/support/preview.ts'
import { giveNode, givePackages } from '../support/node-inside.ts'
import { root } from '../support/server.ts'
import { failsWith } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const PORT = 3000
const PORT6 = 3001
const MIB = 1024 * 1024
/** The allowed growth of the server's memory during transfers of any size. */
const RSS_GROWTH_BYTES = 150 * MIB

const suite = await startSuite()
const { server } = suite
const sandbox = await suite.create()

before(async () => {
  await giveNode(sandbox)
  await givePackages(sandbox, 'app', ['ws'])
  await sandbox.files.write('app/package.json', '{"type":"module"}')
  await sandbox.files.write('app/app.js', readFileSync(join(root, 'tests/support/preview-app.js'), 'utf8'))
  await sandbox.exec.run(`cd app && (setsid node app.js ${PORT} ${PORT6} > log 2>&1 &)`)
  const up = await sandbox.exec.run('until grep -q up app/log; do sleep 0.05; done', { timeout: 30_000 })
  assert.equal(up.exitCode, 0)
})

test('a page, bytes, and a server on ::1 are reached, and the URL is made when it is asked for', async () => {
  const url = await sandbox.getUrl({ port: PORT })
  assert.equal(await sandbox.getUrl({ port: PORT, protocol: 'http' }), url)
  await failsWith(sandbox.getUrl({ port: PORT, protocol: 'https' }), 'not_supported')
  const page = await fetch(url)
  assert.equal(page.headers.get('content-type'), 'text/html')
  assert.equal(await page.text(), '<h1>inside</h1>')
  const bytes = new Uint8Array(await (await fetch(`${url}/binary`)).arrayBuffer())
  assert.deepEqual(
    [...bytes],
    Array.from({ length: 256 }, (_, index) => index),
  )
  assert.equal(await (await fetch(await sandbox.getUrl({ port: PORT6 }))).text(), 'on ::1')
})

test('50 MB go in and come back, and 200 MB for a slow reader do not grow the server', async () => {
  const url = await sandbox.getUrl({ port: PORT })
  const data = randomBytes(50 * MIB)
  const response = await fetch(`${url}/echo`, { method: 'POST', body: data })
  const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  assert.equal(digest(new Uint8Array(await response.arrayBuffer())), digest(data))

  const rss = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1]) * 1024
  const before = rss()
  let most = 0
  let size = 0
  for await (const piece of (await fetch(`${url}/zeros`)).body!) {
    size += piece.length
    most = Math.max(most, rss() - before)
    if (size % (10 * MIB) < piece.length) await sleep(10)
  }
  assert.equal(size, 200 * MIB)
  assert.ok(most < RSS_GROWTH_BYTES, `the server grew by ${most} bytes`)
})

test('an event arrives while the answer is still open, and a WebSocket echoes', async () => {
  const url = await sandbox.getUrl({ port: PORT })
  const leave = new AbortController()
  const events = await fetch(`${url}/events`, { signal: leave.signal })
  const first = await events.body!.getReader().read()
  assert.equal(Buffer.from(first.value!).toString(), 'data: first\n\n')
  leave.abort()
  const socket = new WebSocket(url.replace('http', 'ws'))
  await once(socket, 'open')
  for (const message of ['text', randomBytes(MIB)]) {
    socket.send(message)
    const [data] = (await once(socket, 'message')) as [Buffer]
    assert.ok(Buffer.from(message as string).equals(data))
  }
  socket.close()
  await once(socket, 'close')
})

test('a token is asked for in every way, and the program sees none of it', async () => {
  const { url, token } = await sandbox.createPreviewURL({ port: PORT, authConfig: { type: 'token' } })
  assert.equal((await fetch(url)).status, 401)
  const { token: own } = await sandbox.getToken()
  for (const bearer of [token!, own, server.key]) {
    const answer = await fetch(`${url}/headers`, { headers: { Authorization: `Bearer ${bearer}` } })
    const text = await answer.text()
    assert.equal(answer.status, 200)
    assert.ok(!text.includes(bearer) && !text.includes('authorization'), text)
  }
  const opened = await get(`${url}/headers?a=1&islet_token=${token}`, { headers: { Accept: 'text/html' } })
  assert.deepEqual([opened.status, opened.message.headers.location], [302, '/headers?a=1'])
  const Cookie = `mine=1; ${opened.message.headers['set-cookie']![0]!.split(';')[0]}`
  const seen = (await (await fetch(`${url}/headers?a=1`, { headers: { Cookie } })).json()) as {
    headers: Record<string, string>
  }
  assert.equal(seen.headers.cookie, 'mine=1')
  const socket = new WebSocket(url.replace('http', 'ws'), { headers: { Cookie } })
  await once(socket, 'open')
  socket.terminate()
  const refused = new WebSocket(url.replace('http', 'ws'))
  assert.match(String((await once(refused, 'error'))[0]), /401/)
  // Open again, for the tests below.
  await sandbox.createPreviewURL({ port: PORT })
})

test('a port where nothing listens is told as such, and a page for browsers tries again', async () => {
  const url = await sandbox.getUrl({ port: 4999 })
  const error = await fetch(url)
  assert.equal(error.status, 502)
  assert.equal(((await error.json()) as { error: { code: string } }).error.code, 'port_not_listening')
  const page = await (await fetch(url, { headers: { Accept: 'text/html' } })).text()
  assert.match(page, /Nothing listens on port 4999[\s\S]*tries again/)
  await sandbox.deletePreviewURL(4999)
  await assert.rejects(fetch(url))
  await failsWith(sandbox.deletePreviewURL(4999), 'preview_not_found')
  assert.ok(!(await sandbox.listPreviewURLs()).some(({ port }) => port === 4999))
})

test('URLs and tokens stay the same when the server is killed and started again', async () => {
  const guarded = await sandbox.createPreviewURL({ port: PORT6, authConfig: { type: 'token' } })
  const before = await sandbox.listPreviewURLs()
  await server.kill()
  await assert.rejects(fetch(guarded.url))
  await server.start()
  assert.deepEqual(await sandbox.listPreviewURLs(), before)
  assert.equal((await fetch(guarded.url)).status, 401)
  const headers = { Authorization: `Bearer ${guarded.token}` }
  assert.equal(await (await fetch(guarded.url, { headers })).text(), 'on ::1')
  assert.equal((await fetch(await sandbox.getUrl({ port: PORT }))).status, 200)
})

test('a sandbox that is removed takes its previews along', async () => {
  const other = await suite.create()
  const url = await other.getUrl({ port: 80 })
  assert.equal((await fetch(url)).status, 502)
  const idle = connect(Number(new URL(url).port), '127.0.0.1')
  await once(idle, 'connect')
  idle.resume()
  const closed = once(idle, 'close')
  await other.kill()
  await closed
  await assert.rejects(fetch(url))
  await failsWith(other.getUrl({ port: 80 }), 'invalid_state')
})
