import { Answer, type ApiDeps, type Handlers } from './route.ts'

export function serverRoutes({ control }: ApiDeps) {
  return {
    health: () => ({ status: 'ok' as const, version: control.info().version }),
    ready: () => {
      const reason = control.unready()
      return reason === undefined ? { ready: true } : new Answer(503, { ready: false, reason })
    },
    serverInfo: () => control.info(),
  } satisfies Partial<Handlers>
}
