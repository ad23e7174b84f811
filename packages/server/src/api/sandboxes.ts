import type { ApiDeps, Handlers } from './route.ts'

export function sandboxRoutes({ control, processes }: ApiDeps) {
  return {
    createSandbox: ({ body, idempotencyKey, signal }) => control.create(body, { idempotencyKey, signal }),
    listSandboxes: ({ query }) => control.list(query),
    getSandbox: ({ params }) => control.get(params.id),
    updateSandbox: ({ params, body }) => control.update(params.id, body),
    deleteSandbox: ({ params }) => control.delete(params.id),
    sandboxUsage: ({ params }) => control.usage(params.id),
    run: ({ body, signal }) => processes.run(body, { signal }),
  } satisfies Partial<Handlers>
}
