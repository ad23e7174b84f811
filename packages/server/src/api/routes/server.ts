import { Answer, type ApiDeps, type Handlers } from '../route.ts'

export function serverRoutes({ sandboxes, pruning }: ApiDeps) {
  return {
    health: () => ({ status: 'ok' as const, version: sandboxes.info().version }),
    ready: () => {
      const reason = sandboxes.unready()
      return reason === undefined ? { ready: true } : new Answer(503, { ready: false, reason })
    },
    serverInfo: () => sandboxes.info(),
    prune: ({ body, signal }) => pruning.prune(body, { signal }),
  } satisfies Partial<Handlers>
}
