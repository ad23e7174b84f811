import * as watcher from '../schemas/watcher.ts'
import { type Route, SANDBOX } from './route.ts'

const WATCHER = `${SANDBOX}/watchers/{wid}` as const

export const watcherRoutes = {
  createWatcher: {
    method: 'POST',
    path: `${SANDBOX}/watchers`,
    summary: 'Watch a file or directory',
    tag: 'watchers',
    wakes: true,
    body: watcher.createWatcher,
    response: watcher.watcherInfo,
    status: 201,
  },
  listWatchers: {
    method: 'GET',
    path: `${SANDBOX}/watchers`,
    summary: 'List the watchers',
    tag: 'watchers',
    response: watcher.watcherList,
    status: 200,
  },
  getWatcher: {
    method: 'GET',
    path: WATCHER,
    summary: 'One watcher',
    tag: 'watchers',
    response: watcher.watcherInfo,
    status: 200,
  },
  deleteWatcher: {
    method: 'DELETE',
    path: WATCHER,
    summary: 'Stop watching',
    tag: 'watchers',
    response: null,
    status: 204,
  },
  watcherEvents: {
    method: 'GET',
    path: `${WATCHER}/events`,
    summary: 'Its events as they happen',
    tag: 'watchers',
    wakes: true,
    websocket: true,
    response: null,
    status: 101,
  },
} as const satisfies Record<string, Route>
