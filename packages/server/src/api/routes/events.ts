// The history of a sandbox: a page, or a stream of server-sent events that continues after the client's last event.
import type { IncomingHttpHeaders } from 'node:http'
import { EVENT_ID, IsletError, type ListEventsParsed, type SandboxEvent } from '@islet/contract'
import type { Fleet } from '../../control/fleet.ts'
import { type ApiDeps, Bytes, type Handlers } from '../route.ts'

/** A comment is sent after this long without an event, so that no proxy closes the connection as dead. */
const BEAT_MS = 15_000
/** How soon a browser reconnects. */
const RETRY_MS = 1000

const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // Tells proxies not to buffer the answer.
  'X-Accel-Buffering': 'no',
}

export function eventRoutes({ fleet }: ApiDeps, { draining }: { draining: AbortSignal }) {
  return {
    listEvents: (call) => {
      const { params, query, headers } = call
      const { status } = fleet.record(params.id)
      if (!(query.follow ?? acceptsStream(headers))) return fleet.events.list(params.id, query)
      assertFollowable(query)
      const since = lastEventId(headers) ?? query.since
      const wanted = { since, types: query.types }
      if (status === 'stopped' && isAllTold(fleet, params.id, wanted)) return new Bytes(undefined, {}, 204)
      if (call.isHead) return new Bytes(undefined, STREAM_HEADERS)
      const signal = AbortSignal.any([call.signal, draining])
      return new Bytes(frames(followEvents(fleet, params.id, wanted, signal)), STREAM_HEADERS)
    },
  } satisfies Partial<Handlers>
}

/** Undefined now and then, so that something can be sent. */
export function followEvents(
  fleet: Fleet,
  id: string,
  query: Pick<ListEventsParsed, 'since' | 'types'>,
  signal: AbortSignal,
): AsyncGenerator<SandboxEvent | undefined> {
  return fleet.events.follow(id, query, { signal, isOver: () => isGone(fleet, id), beatMs: BEAT_MS })
}

function acceptsStream({ accept = '' }: IncomingHttpHeaders): boolean {
  return accept.split(',').some((type) => type.split(';')[0]!.trim().toLowerCase() === 'text/event-stream')
}

function assertFollowable({ limit, offset, direction, until }: ListEventsParsed): void {
  if (limit === undefined && offset === undefined && direction !== 'desc' && until === undefined) return
  throw new IsletError('bad_request', 'A stream of events begins with the oldest and has no limit.', {
    hint: 'Leave out limit, offset, until and direction=desc, or follow.',
  })
}

function lastEventId(headers: IncomingHttpHeaders): string | undefined {
  const id = headers['last-event-id']
  if (id === undefined || id === '') return undefined
  if (typeof id === 'string' && EVENT_ID.test(id)) return id
  throw new IsletError('invalid_header', 'Last-Event-ID is not the id of an event.')
}

function isAllTold(fleet: Fleet, id: string, query: ListEventsParsed): boolean {
  return fleet.events.list(id, { ...query, direction: 'asc', limit: 1 }).events.length === 0
}

/** Waits for the sandbox's turn: its last events are written before the turn ends. */
async function isGone(fleet: Fleet, id: string): Promise<boolean> {
  const record = fleet.table.get(id)
  if (record?.status === 'stopped') await fleet.inTurn(id, async () => {})
  return record === undefined || record.status === 'stopped'
}

async function* frames(events: AsyncIterable<SandboxEvent | undefined>): AsyncGenerator<Buffer> {
  yield Buffer.from(`retry: ${RETRY_MS}\n\n`)
  for await (const event of events) yield Buffer.from(event ? frameOf(event) : ':\n\n')
}

function frameOf(event: SandboxEvent): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
