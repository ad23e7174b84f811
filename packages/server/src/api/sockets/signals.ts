// WS /v1/sandboxes/{id}/signals: {type:'start'} {type:'signal'|'overflow'}... {type:'exit'|'error'}
import type { ApiDeps } from '../route.ts'
import { pushMessages } from './socket.ts'
import type { WebSocketRoute } from './upgrade.ts'

export function signalsSocket({ signals, log }: Pick<ApiDeps, 'signals' | 'log'>): WebSocketRoute {
  return async ({ params }) => {
    const listener = await signals.listen(params.id!)
    return { serve: (socket) => void pushMessages(socket, listener, log), close: () => listener.close() }
  }
}
