import * as server from '../schemas/server.ts'
import { tagged } from './route.ts'

export const serverRoutes = tagged('server', {
  health: {
    method: 'GET',
    path: '/health',
    summary: 'Whether the server is up',
    open: true,
    response: server.health,
  },
  ready: {
    method: 'GET',
    path: '/ready',
    summary: 'Whether the server can create sandboxes',
    open: true,
    response: server.ready,
  },
  serverInfo: {
    method: 'GET',
    path: '/v1/info',
    summary: 'Version, engine, capabilities and free resources of the server',
    response: server.serverInfo,
  },
  prune: {
    method: 'POST',
    path: '/v1/prune',
    summary: 'Remove unused images, records of stopped sandboxes and, if asked, their checkpoints',
    body: server.prune,
    response: server.pruned,
  },
})
