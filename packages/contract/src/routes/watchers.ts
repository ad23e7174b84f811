import * as watcher from '../schemas/watcher.ts'
import { SANDBOX, tagged } from './route.ts'

const WATCHER = `${SANDBOX}/watchers/{wid}` as const

export const watcherRoutes = tagged('watchers', {
  createWatcher: {
    method: 'POST',
    path: `${SANDBOX}/watchers`,
    summary: 'Watch a file or directory',
    wakes: true,
    body: watcher.createWatcher,
    response: watcher.watcherInfo,
    status: 201,
  },
  listWatchers: {
    method: 'GET',
    path: `${SANDBOX}/watchers`,
    summary: 'List the watchers',
    response: watcher.watcherList,
  },
  getWatcher: {
    method: 'GET',
    path: WATCHER,
    summary: 'Get one watcher',
    response: watcher.watcherInfo,
  },
  deleteWatcher: {
    method: 'DELETE',
    path: WATCHER,
    summary: 'Delete a watcher',
    response: null,
  },
  watcherEvents: {
    method: 'GET',
    path: `${WATCHER}/events`,
    summary: 'Receive the events of a watcher',
    wakes: true,
    websocket: true,
    response: null,
  },
})
