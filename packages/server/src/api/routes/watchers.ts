import type { ApiDeps, Handlers } from '../route.ts'

export function watcherRoutes({ watchers }: ApiDeps) {
  return {
    createWatcher: ({ params, body, signal }) => watchers.create(params.id, body, { signal }),
    listWatchers: ({ params }) => ({ watchers: watchers.list(params.id) }),
    getWatcher: ({ params }) => watchers.get(params.id, params.wid),
    deleteWatcher: ({ params }) => watchers.delete(params.id, params.wid),
  } satisfies Partial<Handlers>
}
