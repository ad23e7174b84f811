import * as event from '../schemas/event.ts'
import { type Route, SANDBOX } from './route.ts'

export const eventRoutes = {
  listEvents: {
    method: 'GET',
    path: `${SANDBOX}/events`,
    summary: 'The history of a sandbox, or (follow) its history and what happens from now on',
    tag: 'events',
    query: event.listEvents,
    response: event.eventPage,
    streams: true,
    status: 200,
  },
} as const satisfies Record<string, Route>
