import type { ApiDeps, Handlers } from '../route.ts'

export function agentRoutes({ agents }: ApiDeps) {
  return {
    startAgent: ({ params, body }) => agents.start(params.id, body),
    listAgents: async ({ params, query }) => ({ sessions: await agents.list(params.id, query) }),
    getAgent: ({ params }) => agents.get(params.id, params.pid),
    promptAgent: ({ params, body }) => agents.prompt(params.id, params.pid, body),
    interruptAgent: ({ params }) => agents.interrupt(params.id, params.pid),
    configureAgent: ({ params, body }) => agents.configure(params.id, params.pid, body),
  } satisfies Partial<Handlers>
}
