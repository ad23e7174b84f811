import { type EventPage, type EventType, type SandboxEvent, sandboxEventShape } from '@islet/contract/client'
import { checked } from '../client/checked.ts'
import { SandboxPart } from '../client/part.ts'
import { ClientError, hasCode } from '../errors.ts'
import { type Abortable, guard, type Names } from '../options.ts'
import { readLines } from '../transport/lines.ts'
import { backoffMs, isTransient, sleep } from '../transport/retry.ts'

/** How long to try to reopen a broken stream. */
const RECONNECT_MS = 60_000
/** The server sends something every 15 seconds; after this long without anything the connection is dead. */
const SILENCE_MS = 45_000

export interface FollowEventsOptions extends Abortable {
  /** Only events after the event with this id, or from this time on. Default: all. */
  since?: string | Date
  types?: readonly EventType[]
}

export interface ListEventsOptions extends FollowEventsOptions {
  /** Default: 100. */
  limit?: number
  /** Leave out this many from the beginning. */
  offset?: number
  /** `asc` is oldest first. Default: `desc`. */
  direction?: 'asc' | 'desc'
  /** Only events before the event with this id, or before this time. */
  until?: string | Date
}

export interface EventsUrlOptions extends Abortable {
  /** Milliseconds, or like '30m'; at most 7 days. Default: 24 hours. */
  expiresIn?: number | string
}

/** The history of one sandbox. Reading it does not wake the sandbox and does not count as activity. */
export class Events extends SandboxPart {
  /** One page; `more` is true if there are events beyond the limit. */
  list(options: ListEventsOptions = {}): Promise<EventPage> {
    const { signal, since, until, types, ...query } = options
    return this.client.call('listEvents', {
      params: this.params,
      query: { ...query, since: placeOf(since), until: placeOf(until), types: types?.join(',') },
      signal,
    })
  }

  /**
   * All events so far, oldest first, then new events until the sandbox is gone. A broken connection is made again and
   * continues after the last event: no event comes twice, none is missed.
   */
  async *follow(options: FollowEventsOptions = {}): AsyncGenerator<SandboxEvent, void, undefined> {
    const { signal, types } = options
    const query = { follow: true, since: placeOf(options.since), types: types?.join(',') }
    let last: string | undefined
    let isOpened = false
    let brokenAt: number | undefined
    for (let tried = 0; ; tried++) {
      try {
        for await (const event of this.#stream(query, last, signal)) {
          isOpened = true
          brokenAt = undefined
          tried = 0
          if (event === undefined) continue
          last = event.id
          yield event
        }
        return
      } catch (error) {
        // A token expires with its sandbox.
        if (isOpened && hasCode(error, 'sandbox_not_found', 'unauthorized')) return
        brokenAt ??= Date.now()
        if (!isOpened || !isTransient(error) || Date.now() - brokenAt > RECONNECT_MS) throw error
      }
      await sleep(backoffMs(tried), signal)
    }
  }

  /** A URL that gives all events, one as JSON per line, until the sandbox is gone; it needs no key. */
  async streamUrl(options: EventsUrlOptions = {}): Promise<string> {
    const { signal, expiresIn } = options
    return (await this.client.call('signEvents', { params: this.params, body: { expiresIn }, signal })).url
  }

  /** One connection. Ends when there are no more events; any other end is an error. Yields undefined for keep-alive lines. */
  async *#stream(
    query: Record<string, string | boolean | undefined>,
    last: string | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<SandboxEvent | undefined> {
    const silence = new AbortController()
    const stream = await this.client.streamOrNothing('listEvents', {
      params: this.params,
      query,
      headers: { Accept: 'text/event-stream', ...(last !== undefined && { 'Last-Event-ID': last }) },
      signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
    })
    if (!stream) return
    try {
      for await (const line of untilSilence(readLines(stream), silence))
        yield line.startsWith('data: ') ? eventOf(line.slice('data: '.length)) : undefined
    } catch (error) {
      if (!silence.signal.aborted || signal?.aborted) throw error
    }
    throw new ClientError('connection_failed', 'The stream of events broke.')
  }
}

/** Aborts when the server sends nothing for too long. The time that the caller takes does not count. */
async function* untilSilence(
  lines: AsyncGenerator<string>,
  silence: AbortController,
): AsyncGenerator<string> {
  try {
    for (;;) {
      const timer = setTimeout(() => silence.abort(), SILENCE_MS)
      const { done, value } = await lines.next().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } finally {
    await lines.return(undefined)
  }
}

/** An event that is not whole JSON means that the stream broke. */
function eventOf(text: string): SandboxEvent {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new ClientError('connection_failed', 'The stream of events broke.', { cause })
  }
  return checked(sandboxEventShape, value, 'An event')
}

function placeOf(since: string | Date | undefined): string | undefined {
  return since instanceof Date ? since.toISOString() : since
}

const FOLLOW: Names<FollowEventsOptions> = { since: 1, types: 1, signal: 1 }

guard(Events.prototype, 'sandbox.events', {
  list: [{ ...FOLLOW, limit: 1, offset: 1, direction: 1, until: 1 }],
  follow: [FOLLOW],
  streamUrl: [{ expiresIn: 1, signal: 1 }],
})
