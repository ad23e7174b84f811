import { z } from 'zod'
import { direction, json, offset, pageLimit, queryBoolean, timestamp, total } from './common.ts'
import { grantQuery, urlLifetime } from './file.ts'

export const EVENT_TYPES = [
  'created',
  'started',
  'paused',
  'resumed',
  'hibernated',
  'woken',
  'restarted',
  'restored',
  'forked',
  'failed',
  'stopped',
  'idle-timeout',
  'paused-timeout',
  'timeout.changed',
  'network.changed',
  'oom',
  'disk_low',
  'disk_ok',
  'checkpoint.created',
  'checkpoint.deleted',
  'snapshot.created',
  'snapshot.deleted',
  'patch.applied',
  'patch.failed',
  'process.started',
  'process.exited',
  'process.lost',
  'service.started',
  'service.ready',
  'service.restarted',
  'service.stopped',
  'service.failed',
] as const
export const eventType = z.enum(EVENT_TYPES)
export type EventType = z.infer<typeof eventType>

export const sandboxEvent = z.object({
  id: z.string().meta({
    description: 'Larger for every later event of the server; pass it as `since` to continue from here.',
  }),
  sandboxId: z.string(),
  type: eventType,
  data: z.record(z.string(), json),
  createdAt: timestamp,
})
export type SandboxEvent = z.infer<typeof sandboxEvent>

export const EVENT_ID = /^\d{1,15}$/
const PLACE = 'it must be the id of an event, or a time like 2026-05-01T12:00:00Z'
const place = z.union([z.string().regex(EVENT_ID, PLACE), z.iso.datetime({ offset: true, error: PLACE })])
const types = z
  .union([z.string(), z.array(z.string())])
  .transform((value, context) => {
    const found: EventType[] = []
    for (const name of [value].flat().flatMap((text) => text.split(','))) {
      const parsed = eventType.safeParse(name)
      if (parsed.success) found.push(parsed.data)
      else context.addIssue({ code: 'custom', message: `there is no event type '${name}'`, input: value })
    }
    return found
  })
  .meta({ description: 'Only events of these types, separated by commas.' })

export const listEvents = z.strictObject({
  limit: pageLimit,
  offset,
  direction: direction.meta({ description: 'asc: oldest first. Default: desc; asc when following.' }),
  since: place
    .optional()
    .meta({ description: 'Only events after the event with this id, or at or after this time.' }),
  until: place
    .optional()
    .meta({ description: 'Only events before the event with this id, or before this time.' }),
  types: types.optional(),
  follow: queryBoolean.optional().meta({
    description:
      'Answer as text/event-stream: all events so far, oldest first, then new ones until the sandbox is stopped. Allows only `since` and `types`. Accept: text/event-stream does the same; Last-Event-ID wins over `since`. 204: the sandbox is stopped and there are no more events.',
  }),
})
export type ListEventsParsed = z.output<typeof listEvents>

export const eventPage = z.object({
  events: z.array(sandboxEvent),
  total,
  more: z.boolean().meta({ description: 'True if there are events beyond the limit.' }),
})
export type EventPage = z.infer<typeof eventPage>

export const signEvents = z.strictObject({
  expiresIn: urlLifetime.optional().meta({ description: 'Milliseconds or like 30m. Default: 24 hours.' }),
})
export type SignEvents = z.input<typeof signEvents>
export const eventsUrl = z.object({ url: z.string(), expiresAt: timestamp })
export type EventsUrl = z.infer<typeof eventsUrl>
export const signedEvents = grantQuery.extend({
  since: place
    .optional()
    .meta({ description: 'Only events after the event with this id, or at or after this time.' }),
})
