import { IsletError, type SandboxToken } from '@islet/contract'
import { created } from './lifecycle.ts'
import type { ApiDeps, Handlers } from './route.ts'

/** Who decides about a sandbox decides what it reaches; a token may be in the hands of what runs inside. */
function keyWanted(): IsletError {
  return new IsletError('forbidden', 'The token of a sandbox cannot turn its network on.', {
    hint: 'It wants the API key: islet network on SANDBOX.',
  })
}

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
    updateSandbox: ({ params, body, caller }) => {
      if (body.network?.enabled && caller?.kind !== 'admin') throw keyWanted()
      return control.update(params.id, body)
    },
    deleteSandbox: ({ params }) => control.delete(params.id),
    sandboxUsage: ({ params }) => control.usage(params.id),
    run: ({ body, signal }) => processes.run(body, { signal }),
  } satisfies Partial<Handlers>
}
