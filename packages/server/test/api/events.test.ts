import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { type EventPage, LIMITS } from '@islet/contract'
import { EventClient } from '../support/event-client.ts'
import { errorOf, startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(() => api[Symbol.asyncDispose]())

const list = async (id: string, query = ''): Promise<EventPage> => {
  const response = await api.call('GET', `/v1/sandboxes/${id}/events${query}`)
  assert.equal(response.status, 200, await response.clone().text())
  return (await response.json()) as EventPage
}
const post = async (path: string, body: unknown = {}) => {
  const response = await api.call('POST', path, body)
  assert.ok(response.ok, `${path}: ${response.status} ${await response.text()}`)
}
const change = (id: string, idle: number) => post(`/v1/sandboxes/${id}/timeout`, { idle })
const typesOf = ({ events }: EventPage) => events.map(({ type }) => type)
const idsOf = ({ events }: Pick<EventPage, 'events'>) => events.map(({ id }) => Number(id))

test('a life leaves its events, in order, and they can still be read when the sandbox is gone', async () => {
  const { id } = await api.createSandbox()
  await change(id, 60_000)
  await post(`/v1/sandboxes/${id}/hibernate`)
  await post(`/v1/sandboxes/${id}/wake`)
  await post(`/v1/sandboxes/${id}/checkpoints`, { name: 'one' })
  await api.call('DELETE', `/v1/sandboxes/${id}`)
  const { events, more } = await list(id, '?direction=asc')
  assert.deepEqual(
    events.map(({ type }) => type),
    ['created', 'started', 'timeout.changed', 'hibernated', 'woken', 'checkpoint.created', 'stopped'],
  )
  assert.equal(more, false)
  for (const event of events) assert.equal(event.sandboxId, id)
  assert.deepEqual(
    events.map(({ createdAt }) => createdAt),
    events.map(({ createdAt }) => createdAt).sort(),
  )
  assert.deepEqual(events[0]!.data, { runtime: 'host' })
  assert.equal(events[2]!.data.idleMs, 60_000)
})

test('a process that is started is told with its command as it was given', async () => {
  const { id } = await api.createSandbox()
  const long = 'x'.repeat(500)
  for (const command of ['true  a b', ['true', 'a b', "it's"], ['true', long, 'never told'], `true ${long}`])
    await post(`/v1/sandboxes/${id}/exec`, { command })
  const { events } = await list(id, '?direction=asc&types=process.started')
  assert.deepEqual(
    events.map(({ data }) => data.command),
    ['true  a b', ['true', 'a b', "it's"], ['true', `${'x'.repeat(194)}…`, '…'], `true ${'x'.repeat(194)}…`],
  )
})

test('a list takes a limit, a direction, a place or a time to begin and end, and types', async () => {
  const { id } = await api.createSandbox()
  for (let index = 1; index <= 5; index++) await change(id, index * 1000)
  const all = await list(id, '?direction=asc')
  assert.equal(all.events.length, 7)
  assert.deepEqual(idsOf(await list(id)), idsOf(all).reverse(), 'newest first unless told else')
  const two = await list(id, '?limit=2&direction=asc')
  assert.deepEqual([idsOf(two), two.more], [idsOf(all).slice(0, 2), true])
  const next = await list(id, `?limit=5&direction=asc&since=${two.events[1]!.id}`)
  assert.deepEqual([idsOf(next), next.more], [idsOf(all).slice(2), false])
  assert.deepEqual(idsOf(await list(id, `?until=${all.events[2]!.id}&direction=asc`)), idsOf(two))
  assert.deepEqual(typesOf(await list(id, '?types=created,started&direction=asc')), ['created', 'started'])
  assert.deepEqual(typesOf(await list(id, '?types=created&types=started')), ['started', 'created'])
  const { createdAt } = all.events[4]!
  const since = all.events.filter((event) => event.createdAt >= createdAt)
  const at = encodeURIComponent(createdAt)
  assert.deepEqual(idsOf(await list(id, `?since=${at}&direction=asc`)), idsOf({ events: since }))
  assert.equal((await list(id, `?until=${at}`)).events.length, 7 - since.length)
  assert.deepEqual((await list(id, '?since=2100-01-01T00:00:00Z')).events, [])
  const middle = await list(id, '?offset=2&limit=3&direction=asc')
  assert.deepEqual([idsOf(middle), middle.total, middle.more], [idsOf(all).slice(2, 5), 7, true])
  const last = await list(id, '?offset=6&types=created,network.changed,timeout.changed,started')
  assert.deepEqual([idsOf(last), last.total, last.more], [idsOf(all).slice(0, 1), 7, false])
  assert.equal((await list(id, `?since=${at}&limit=1`)).total, since.length)
})

test('what makes no sense is refused', async () => {
  const { id } = await api.createSandbox()
  const refused = [
    '?limit=0',
    '?limit=1001',
    '?offset=-1',
    '?direction=up',
    '?since=yesterday',
    '?since=-1',
    '?types=unheard-of',
    '?types=',
    '?other=1',
    '?follow=perhaps',
    '?follow=true&limit=5',
    '?follow=true&offset=5',
    '?follow=true&direction=desc',
    '?follow=true&until=3',
  ]
  for (const query of refused) {
    const { status, code } = await errorOf(await api.call('GET', `/v1/sandboxes/${id}/events${query}`))
    assert.deepEqual([status, code], [400, 'bad_request'], query)
  }
  const place = await errorOf(await api.call('GET', `/v1/sandboxes/${id}/events?since=yesterday`))
  assert.match(place.message, /since: it must be the id of an event, or a time like/)
  const headers = { 'Last-Event-ID': 'x' }
  const wrong = await api.call('GET', `/v1/sandboxes/${id}/events?follow=true`, undefined, { headers })
  assert.equal((await errorOf(wrong)).code, 'invalid_header')
  const none = await api.call('GET', '/v1/sandboxes/sbx-00000000000000000000/events?follow=true')
  assert.equal((await errorOf(none)).code, 'sandbox_not_found')
})

test('a stream gives past events, then new events, and ends with the sandbox', async () => {
  const { id } = await api.createSandbox()
  const client = await EventClient.open(api, id)
  await until(() => client.events.length === 2)
  await change(id, 1000)
  await until(() => client.events.length === 3)
  assert.deepEqual(client.types, ['created', 'started', 'timeout.changed'])
  const later = await EventClient.open(api, id, `&since=${client.ids.at(-1)}&types=stopped`)
  await api.call('DELETE', `/v1/sandboxes/${id}`)
  assert.equal(await client.ended, 'ended')
  assert.equal(await later.ended, 'ended')
  assert.deepEqual(later.types, ['stopped'])
  assert.deepEqual(client.events, (await list(id, '?direction=asc')).events)
})

test('a browser asks with its Accept header, continues with Last-Event-ID, and gets 204 at the end', async () => {
  const { id } = await api.createSandbox()
  const [first] = (await list(id, '?direction=asc')).events
  await api.call('DELETE', `/v1/sandboxes/${id}`)
  const open = (headers: Record<string, string>, query = '', method = 'GET') =>
    api.call(method, `/v1/sandboxes/${id}/events${query}`, undefined, {
      headers: { Accept: 'text/event-stream', ...headers },
    })
  const response = await open({ 'Last-Event-ID': first!.id }, '?since=0')
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const client = new EventClient(response, new AbortController())
  assert.equal(await client.ended, 'ended')
  assert.deepEqual(client.types, ['started', 'stopped'])
  assert.match(client.text, /^retry: \d+\n\n/)
  const over = await open({ 'Last-Event-ID': client.events.at(-1)!.id })
  assert.deepEqual([over.status, await over.text()], [204, ''])
  assert.deepEqual(typesOf((await (await open({}, '?follow=false')).json()) as EventPage), [
    'stopped',
    'started',
    'created',
  ])
  const head = await open({}, '', 'HEAD')
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('a token follows the events of its own sandbox and of no other', async () => {
  const mine = await api.createSandbox()
  const other = await api.createSandbox()
  const headers = { Authorization: `Bearer ${mine.token}` }
  const client = await EventClient.open(api, mine.id, '', headers)
  await until(() => client.events.length === 2)
  const refused = await api.call('GET', `/v1/sandboxes/${other.id}/events?follow=true`, undefined, {
    headers,
  })
  assert.equal((await errorOf(refused)).code, 'forbidden')
  await client.close()
})

test('reading and following wake nothing, and are no activity', async () => {
  const { id } = await api.createSandbox({ timeout: { idle: 1000 } })
  const client = await EventClient.open(api, id)
  await until(() => client.types.includes('hibernated'))
  await list(id)
  const sandbox = (await (await api.call('GET', `/v1/sandboxes/${id}`)).json()) as { status: string }
  assert.equal(sandbox.status, 'hibernated')
  assert.deepEqual(client.types, ['created', 'started', 'idle-timeout', 'hibernated'])
  await client.close()
})

test('the number of followers of one sandbox is limited; a follower that leaves makes room', async () => {
  const { id } = await api.createSandbox()
  const clients = await Promise.all(
    Array.from({ length: LIMITS.eventListeners }, () => EventClient.open(api, id)),
  )
  const more = () => api.call('GET', `/v1/sandboxes/${id}/events?follow=true`)
  const refused = await errorOf(await more())
  assert.deepEqual([refused.status, refused.code], [429, 'limit_exceeded'])
  await clients[0]!.close()
  await until(async () => {
    const response = await more()
    await response.body?.cancel()
    return response.status === 200
  })
  await Promise.all(clients.map((client) => client.close()))
})

test('a client that does not read is told everything, in order, when it does', async () => {
  const { id } = await api.createSandbox()
  const socket = connect(api.port, '127.0.0.1')
  socket.pause()
  socket.write(
    `GET /v1/sandboxes/${id}/events?follow=true&types=timeout.changed HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nAuthorization: Bearer ${TEST_KEY}\r\n\r\n`,
  )
  const many = Array.from({ length: 300 }, (_, index) => index + 1)
  for (let at = 0; at < many.length; at += 8)
    await Promise.all(many.slice(at, at + 8).map((idle) => change(id, idle * 1000)))
  await api.call('DELETE', `/v1/sandboxes/${id}`)
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  socket.resume()
  await until(() => text.endsWith('0\r\n\r\n'))
  socket.destroy()
  const ids = [...text.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]))
  assert.deepEqual(ids, idsOf(await list(id, '?types=timeout.changed&direction=asc&limit=1000')))
  assert.equal(ids.length, many.length)
})

test('a server that is told to stop ends the streams and does not wait for them', async () => {
  await using own = await startTestApi({ drainTimeoutMs: 600_000 })
  const { id } = await own.createSandbox()
  const client = await EventClient.open(own, id)
  await until(() => client.events.length === 2)
  await own[Symbol.asyncDispose]()
  assert.equal(await client.ended, 'ended')
})
