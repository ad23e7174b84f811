import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from '../route.ts'
import { pushMessages } from '../sockets/socket.ts'
import type { WebSocketRoute } from '../sockets/upgrade.ts'

export function watcherRoutes({ watchers }: ApiDeps) {
  return {
    createWatcher: ({ params, body, signal }) => watchers.create(params.id, body, { signal }),
    listWatchers: ({ params }) => ({ watchers: watchers.list(params.id) }),
    getWatcher: ({ params }) => watchers.get(params.id, params.wid),
    deleteWatcher: ({ params }) => watchers.delete(params.id, params.wid),
    watcherEvents: () => {
      throw new IsletError('bad_request', 'This route is a WebSocket.', { hint: 'Send Upgrade: websocket.' })
    },
  } satisfies Partial<Handlers>
}

/** WS /v1/sandboxes/{id}/watchers/{wid}/events: {type:'start'} {type:'change'|'overflow'}... {type:'exit'|'error'} */
export function watcherEventsRoute({ watchers, log }: ApiDeps): WebSocketRoute {
  return async ({ params }) => {
    const { messages, close } = await watchers.events(params.id!, params.wid!)
    return { serve: (socket) => void pushMessages(socket, messages, log), close }
  }
}
