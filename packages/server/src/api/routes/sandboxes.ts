import { IsletError, type UpdateSandboxParsed } from '@islet/contract'
import { runOnce } from '../../data/processes/run.ts'
import type { ApiDeps, Handlers } from '../route.ts'
import { created } from './lifecycle.ts'

/**
 * What a token may not change: it may be in the hands of what runs inside. Its network is what it reaches; its limits are what it costs
 * others; a name or a project is how the holder of the API key finds a sandbox, so that one with another's name would be given what is
 * meant for the other.
 */
function assertTokenMay(body: UpdateSandboxParsed): void {
  if (body.network?.enabled)
    throw keyWanted('turn its network on', 'It wants the API key: islet network on SANDBOX.')
  for (const field of ['name', 'project', 'resources'] as const)
    if (body[field] !== undefined)
      throw keyWanted(`change its ${field}`, 'It wants the API key: islet update SANDBOX.')
}

const keyWanted = (what: string, hint: string) =>
  new IsletError('forbidden', `The token of a sandbox cannot ${what}.`, { hint })

export function sandboxRoutes({ sandboxes, patches, processes, tokens }: ApiDeps) {
  return {
    createSandbox: async ({ body, idempotencyKey, signal }) =>
      created(await sandboxes.create(body, { idempotencyKey, signal }), { tokens, patches }),
    listSandboxes: ({ query }) => sandboxes.list(query),
    getSandbox: ({ params }) => sandboxes.get(params.id),
    updateSandbox: ({ params, body, caller }) => {
      if (caller?.kind !== 'admin') assertTokenMay(body)
      return sandboxes.update(params.id, body)
    },
    deleteSandbox: ({ params }) => sandboxes.delete(params.id),
    sandboxUsage: ({ params }) => sandboxes.usage(params.id),
    run: ({ body, signal }) => runOnce(sandboxes, processes, body, { signal }),
  } satisfies Partial<Handlers>
}
