import type { ApiDeps, Handlers } from '../route.ts'

export function execRoutes({ processes }: ApiDeps) {
  return {
    exec: async ({ params, body, signal, autoResumed }) => ({
      ...(await processes.exec(params.id, body, { signal })),
      autoResumed,
    }),
  } satisfies Partial<Handlers>
}
