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
  signEvents: {
    method: 'POST',
    path: `${SANDBOX}/events/sign`,
    summary: 'Create a URL of the events, which is read without a key until the URL expires',
    body: event.signEvents,
    response: event.eventsUrl,
    status: 201,
  },
  readSignedEvents: {
    method: 'GET',
    path: '/v1/signed-events',
    summary: 'Read all events with a signed URL, one as JSON per line, until the sandbox is stopped',
    open: true,
    query: event.signedEvents,
    response: 'bytes',
  },
})
