import {
  type CreatedSandbox,
  IsletError,
  type Sandbox,
  type UpdateSandboxParsed,
  type WokenSandbox,
} from '@islet/contract'
import { runOnce } from '../../data/processes/run.ts'
import { progressing } from '../progress.ts'
import type { ApiDeps, Handlers } from '../route.ts'

export function sandboxRoutes({ sandboxes, patches, processes, tokens }: ApiDeps) {
  return {
    createSandbox: ({ body, idempotencyKey, signal, headers }) =>
      progressing(headers, 'sandbox', async (onProgress) => {
        const sandbox = await sandboxes.create(body, { idempotencyKey, signal, onProgress })
        return created(sandbox, { tokens, patches })
      }),
    listSandboxes: ({ query }) => sandboxes.list(query),
    getSandbox: ({ params }) => sandboxes.get(params.id),
    updateSandbox: ({ params, body, caller }) => {
      if (caller?.kind !== 'admin') assertTokenMay(body)
      return sandboxes.update(params.id, body)
    },
    deleteSandbox: ({ params }) => sandboxes.delete(params.id),
    sandboxUsage: ({ params }) => sandboxes.usage(params.id),
    run: ({ body, signal, headers }) =>
      progressing(headers, 'result', (onProgress) =>
        runOnce(sandboxes, processes, body, { signal, onProgress }),
      ),
    pauseSandbox: ({ params }) => sandboxes.pause(params.id),
    resumeSandbox: async ({ params }) => withPatches(await sandboxes.resume(params.id), patches),
    hibernateSandbox: ({ params }) => sandboxes.hibernate(params.id),
    wakeSandbox: async ({ params, body }) =>
      withPatches(await sandboxes.wake(params.id, { idleMs: body.timeout }), patches),
    setTimeout: ({ params, body }) => sandboxes.setTimeouts(params.id, body),
    forkSandbox: async ({ params, body, signal }) => {
      const { forks, ...rest } = await sandboxes.fork(params.id, body, { signal })
      const issued = forks.map((result) => {
        if (result.ok) return { ok: true as const, sandbox: created(result.sandbox, { tokens, patches }) }
        const { code, message, hint } = result.error
        return { ok: false as const, error: { code, message, ...(hint !== undefined && { hint }) } }
      })
      return { ...rest, forks: issued }
    },
    listSandboxPatches: ({ params }) => {
      sandboxes.record(params.id)
      return { patches: patches.runs(params.id) }
    },
    createToken: ({ params, body }) => {
      const { status } = sandboxes.get(params.id)
      if (status === 'stopped')
        throw new IsletError('invalid_state', `Sandbox ${params.id} is stopped: there is nothing to reach.`)
      return tokens.issue(params.id, { lifetimeMs: body.expiresIn })
    },
  } satisfies Partial<Handlers>
}

/** A new sandbox, with its token and the results of its patches. */
export function created(
  sandbox: Sandbox,
  { tokens, patches }: Pick<ApiDeps, 'tokens' | 'patches'>,
): CreatedSandbox {
  const { token, expiresAt } = tokens.issue(sandbox.id)
  // Only a sandbox made from another one can have patches.
  const settled = sandbox.origin === null ? sandbox : withPatches(sandbox, patches)
  return { ...settled, token, tokenExpiresAt: expiresAt }
}

function withPatches(sandbox: Sandbox, patches: ApiDeps['patches']): WokenSandbox {
  const runs = patches.runs(sandbox.id)
  return runs.length === 0 ? sandbox : { ...sandbox, patches: runs }
}

/**
 * The programs inside may hold the token of their sandbox, so some fields need the API key: the network decides what they reach, the limits
 * decide what they take from other sandboxes, and a name or project could make the holder of the key mistake this sandbox for another.
 */
function assertTokenMay(body: UpdateSandboxParsed): void {
  if (body.network?.enabled) throw needsKey('turn its network on', 'islet network on SANDBOX')
  for (const field of ['name', 'project', 'resources'] as const)
    if (body[field] !== undefined) throw needsKey(`change its ${field}`, 'islet update SANDBOX')
}

const needsKey = (what: string, command: string) =>
  new IsletError('forbidden', `The token of a sandbox cannot ${what}.`, {
    hint: `This needs the API key: ${command}.`,
  })
