import type { ApiDeps, Handlers } from './route.ts'

export function execRoutes({ processes }: ApiDeps) {
  return {
    exec: ({ params, body, signal }) => processes.exec(params.id, body, { signal }),
  } satisfies Partial<Handlers>
}
