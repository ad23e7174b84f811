// WS /v1/sandboxes/{id}/watchers/{wid}/events: {type:'start'} {type:'change'|'overflow'}... {type:'exit'|'error'}
import type { ApiDeps } from '../route.ts'
import { pushMessages } from './socket.ts'
import type { WebSocketRoute } from './upgrade.ts'

export function watcherSocket({ watchers, log }: Pick<ApiDeps, 'watchers' | 'log'>): WebSocketRoute {
  return async ({ params }) => {
    const { messages, close } = await watchers.events(params.id!, params.wid!)
    return { serve: (socket) => void pushMessages(socket, messages, log), close }
  }
}
