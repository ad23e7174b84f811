// Requests made from the contract's table and then spoilt, against a real server: it answers each with what the table of errors knows, never
// with `internal`, and goes on. Sandboxes have their wall: whatever a command becomes, it runs there.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { before, test } from 'node:test'
import { ERRORS, type ErrorCode, ROUTES, type Route } from '@islet/contract'
import type { Sandbox } from 'islet'
import { startSuite } from '../support/suite.ts'
import { corpus, Random, repeatedly, SEED } from './fuzz.ts'
import { jsonOf, mutated, schemaOf, valueFor } from './values.ts'

/** The first reach for the internet or take minutes; the last says in words of its own that the server is full. */
const LEFT_OUT = new Set(['pullImage', 'buildImage', 'importImage', 'collectImages', 'ready'])
const NAMES = Object.keys(ROUTES).filter((name) => !LEFT_OUT.has(name)) as (keyof typeof ROUTES)[]
/** Some calls wait for what does not come; what is asked is that the server does not. */
const PATIENCE_MS = 2000
const AT_ONCE = 16

const suite = await startSuite({ env: { ISLET_MAX_SANDBOXES: '12' } })
const { server } = suite
let pid: number
let sandbox: Sandbox
before(() => {
  pid = server.pid
})

test(`requests that are nearly right are answered with an error of the table (seed ${SEED})`, async () => {
  const random = new Random(SEED)
  const rounds = await repeatedly(async () => {
    await haveSandbox()
    await Promise.all(Array.from({ length: AT_ONCE }, () => call(random)))
  })
  await isWell()
  console.log(`${rounds * AT_ONCE} requests`)
})

test(`bytes that are nearly a request are answered with an error of the table, or not at all (seed ${SEED})`, async () => {
  const random = new Random(SEED + 1)
  await haveSandbox()
  const kept = corpus('http')
  const path = `/v1/sandboxes/${sandbox.id}/exec`
  const head = `Host: ${new URL(server.url).host}\r\nAuthorization: Bearer ${server.key}\r\n`
  const json = '{"command":"true"}'
  const whole = [
    `GET /v1/info HTTP/1.1\r\n${head}\r\n`,
    `POST ${path} HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
    `POST ${path} HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n${json}\r\n0\r\n\r\n`,
    `PUT /v1/sandboxes/${sandbox.id}/files?path=a HTTP/1.1\r\n${head}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc`,
    `GET /v1/sandboxes/${sandbox.id}/signals HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x85\0\0\0\0hello`,
  ].map((text) => Buffer.from(text, 'latin1'))
  const cases = await repeatedly(async (n) => {
    const first = kept[n] ?? random.bytes(random.pick(whole))
    // One after the other on one connection, without waiting.
    const bytes = random.chance(0.3) ? Buffer.concat([first, random.pick(whole)]) : first
    checkRaw(await sendRaw(bytes), bytes)
  }, AT_ONCE)
  await isWell()
  console.log(`${cases} connections`)
})

async function call(random: Random): Promise<void> {
  const name = random.pick(NAMES)
  const route: Route = ROUTES[name]
  const request = describe(route, random)
  const { method } = route
  const told = `${name}: ${method} ${request.path} ${JSON.stringify(request.headers)} ${request.body?.slice(0, 500)}`
  const signal = AbortSignal.timeout(PATIENCE_MS)
  let response: Response
  try {
    const headers = { Authorization: `Bearer ${server.key}`, ...request.headers }
    response = await fetch(server.url + request.path, { method, headers, body: request.body ?? null, signal })
    if (response.ok || response.status === 304) return void (await response.body?.cancel())
  } catch (error) {
    assert.equal((error as Error).name, 'TimeoutError', `${told}: ${error} ${(error as Error).cause}`)
    return isWell()
  }
  const text = await response.text()
  assert.ok(isOfTable(text, response.status), `${told}\n${response.status} ${text}`)
}

function describe(route: Route, random: Random) {
  const isSpoilt = random.chance(0.7)
  const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => parameter(param, random))
  const search = new URLSearchParams()
  if (route.query) {
    const value = valueFor(schemaOf(route.query), random) as Record<string, unknown>
    const query = isSpoilt && random.chance(0.5) ? mutated(value, random) : value
    for (const [key, item] of Object.entries(query ?? {})) search.append(key, String(item))
  }
  const headers: Record<string, string> = {}
  let body: string | undefined
  if (route.body === 'bytes') body = random.text(50).toWellFormed()
  else if (route.body) {
    const value = valueFor(schemaOf(route.body), random)
    body = jsonOf(isSpoilt ? mutated(value, random) : value, random)
    headers['Content-Type'] = 'application/json'
  }
  if (random.chance(0.05))
    headers['Content-Type'] = random.pick(['text/plain', 'application/json; charset=utf-16', 'x/y'])
  if (random.chance(0.05)) headers['Content-Encoding'] = random.pick(['gzip', 'identity', 'br'])
  if (random.chance(0.05)) headers.Range = random.pick(['bytes=0-', 'bytes=-1', 'bytes=9-1', 'x'])
  if (route.idempotent && random.chance(0.1))
    headers['Idempotency-Key'] = random.pick(['one', 'two', 'x'.repeat(300)])
  const query = random.chance(0.03)
    ? `?${random.pick(['%', '%ff', 'a=%00', '__proto__=1', '&&&', 'path=a&path=b'])}`
    : ''
  return { path: path + (query || (search.size > 0 ? `?${search}` : '')), headers, body }
}

function parameter(name: string, random: Random): string {
  if (name === 'id' && random.chance(0.9)) return sandbox.id
  const likely = { pid: 'prc', tid: 'trm', wid: 'wtc', cid: 'ckp', oid: 'ovl' }[name]
  if (likely && random.chance(0.5)) return `${likely}-${'a1b2c3d4e5f6g7h8i9j0k'.slice(0, 21)}`
  return encodeURIComponent(
    random.pick(['x', '1', '3000', '..', '.', 'a/b', 'a b', random.text(5).toWellFormed()]) || 'x',
  )
}

/** The fuzz may have removed it. */
async function haveSandbox(): Promise<void> {
  const isThere =
    sandbox && (await server.fetch(`/v1/sandboxes/${sandbox.id}`)).ok && (await sandbox.isRunning())
  if (isThere) return
  for (const { id } of (await suite.islet.sandboxes.list({ limit: 1000 })).sandboxes)
    await suite.islet.sandboxes.delete(id)
  sandbox = await suite.create()
}

/** Returns everything that the server answers before the connection is closed. */
function sendRaw(bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve) => {
    let heard = ''
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.end(bytes))
    socket.setTimeout(PATIENCE_MS, () => socket.destroy())
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1')
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(heard))
  })
}

function checkRaw(heard: string, sent: Buffer): void {
  const told = `${JSON.stringify(sent.toString('latin1'))}\n${heard.slice(0, 2000)}`
  for (const [, status] of heard.matchAll(/^HTTP\/1\.1 (\d+)/gm)) assert.notEqual(Number(status), 500, told)
  assert.ok(!heard.includes('"internal"'), told)
}

function isOfTable(text: string, status: number): boolean {
  if (text === '') return false
  const code = JSON.parse(text).error?.code as ErrorCode
  return code !== 'internal' && ERRORS[code]?.status === status
}

async function isWell(): Promise<void> {
  assert.equal(server.pid, pid)
  assert.equal((await fetch(`${server.url}/health`, { signal: AbortSignal.timeout(30_000) })).status, 200)
}
