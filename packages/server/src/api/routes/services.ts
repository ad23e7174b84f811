import type { ApiDeps, Handlers } from '../route.ts'

export function serviceRoutes({ services }: ApiDeps) {
  return {
    startService: ({ params, body }) => services.start(params.id, body),
    listServices: ({ params }) => ({ services: services.list(params.id) }),
    getService: ({ params, query, signal, hold }) => {
      if (query.wait) hold(params.id)
      return services.get(params.id, params.name, { status: query.status, waitMs: query.wait, signal })
    },
    deleteService: ({ params }) => services.delete(params.id, params.name),
    stopService: ({ params }) => services.stop(params.id, params.name),
    restartService: ({ params }) => services.restart(params.id, params.name),
    serviceLogs: ({ params, query }) =>
      services.logs(params.id, params.name, { install: query.install ?? false }),
  } satisfies Partial<Handlers>
}
