import type { ApiDeps, Handlers } from './route.ts'

export function sandboxRoutes({ control, processes, tokens }: ApiDeps) {
  return {
    createSandbox: async ({ body, idempotencyKey, signal }) => {
      const sandbox = await control.create(body, { idempotencyKey, signal })
      const { token, expiresAt } = await tokens.issue(sandbox.id)
      return { ...sandbox, token, tokenExpiresAt: expiresAt }
    },
    listSandboxes: ({ query }) => control.list(query),
    getSandbox: ({ params }) => control.get(params.id),
    updateSandbox: ({ params, body }) => control.update(params.id, body),
    deleteSandbox: ({ params }) => control.delete(params.id),
    sandboxUsage: ({ params }) => control.usage(params.id),
    run: ({ body, signal }) => processes.run(body, { signal }),
  } satisfies Partial<Handlers>
}
