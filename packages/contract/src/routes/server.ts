import * as server from '../schemas/server.ts'
import type { Route } from './route.ts'

export const serverRoutes = {
  health: {
    method: 'GET',
    path: '/health',
    summary: 'Is the server up?',
    tag: 'server',
    open: true,
    response: server.health,
    status: 200,
  },
  ready: {
    method: 'GET',
    path: '/ready',
    summary: 'Can it make sandboxes?',
    tag: 'server',
    open: true,
    response: server.ready,
    status: 200,
  },
  serverInfo: {
    method: 'GET',
    path: '/v1/info',
    summary: 'Version, engine and what it can do',
    tag: 'server',
    response: server.serverInfo,
    status: 200,
  },
  prune: {
    method: 'POST',
    path: '/v1/prune',
    summary:
      'Remove what nothing uses: images, records of sandboxes that are gone, and their checkpoints when asked',
    tag: 'server',
    body: server.prune,
    response: server.pruned,
    status: 200,
  },
} as const satisfies Record<string, Route>
