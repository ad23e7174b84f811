import * as event from '../schemas/event.ts'
import { SANDBOX, tagged } from './route.ts'

export const eventRoutes = tagged('events', {
  listEvents: {
    method: 'GET',
    path: `${SANDBOX}/events`,
    summary: 'List the events of a sandbox; with follow, also stream new ones',
    query: event.listEvents,
    response: event.eventPage,
    streams: true,
  },
})
