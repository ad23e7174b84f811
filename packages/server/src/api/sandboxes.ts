import type { SandboxToken } from '@islet/contract'
import { created } from './lifecycle.ts'
import type { ApiDeps, Handlers } from './route.ts'

export function sandboxRoutes({ control, patches, processes, tokens }: ApiDeps) {
  return {
    createSandbox: async ({ body, idempotencyKey, signal }) => {
      let token: SandboxToken | undefined
      const beside = (id: string) => {
        token = tokens.issue(id)
      }
      const sandbox = await control.create(body, { idempotencyKey, signal, beside })
      return created(sandbox, { tokens, patches }, token)
    },
    listSandboxes: ({ query }) => control.list(query),
    getSandbox: ({ params }) => control.get(params.id),
    updateSandbox: ({ params, body }) => control.update(params.id, body),
    deleteSandbox: ({ params }) => control.delete(params.id),
    sandboxUsage: ({ params }) => control.usage(params.id),
    run: ({ body, signal }) => processes.run(body, { signal }),
  } satisfies Partial<Handlers>
}
