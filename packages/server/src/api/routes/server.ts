import { Answer, type ApiDeps, type Handlers } from '../route.ts'

export function serverRoutes({ control, pruning }: ApiDeps) {
  return {
    health: () => ({ status: 'ok' as const, version: control.info().version }),
    ready: () => {
      const reason = control.unready()
      return reason === undefined ? { ready: true } : new Answer(503, { ready: false, reason })
    },
    serverInfo: () => control.info(),
    prune: ({ body, signal }) => pruning.prune(body, { signal }),
  } satisfies Partial<Handlers>
}
