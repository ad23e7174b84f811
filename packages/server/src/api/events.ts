import type { ApiDeps, Handlers } from './route.ts'

export function eventRoutes({ fleet }: ApiDeps) {
  return {
    listEvents: ({ params, query }) => {
      fleet.record(params.id)
      return fleet.events.list(params.id, query)
    },
  } satisfies Partial<Handlers>
}
