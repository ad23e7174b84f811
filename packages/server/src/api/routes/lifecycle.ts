import type { CreatedSandbox, Sandbox, WokenSandbox } from '@islet/contract'
import { fork } from '../../control/saved/forks.ts'
import type { ApiDeps, Handlers } from '../route.ts'

export function lifecycleRoutes({ sandboxes, fleet, savedStates, patches, tokens }: ApiDeps) {
  const woken = (sandbox: Sandbox): WokenSandbox => withPatches(sandbox, patches)
  return {
    pauseSandbox: ({ params }) => sandboxes.pause(params.id),
    resumeSandbox: async ({ params }) => woken(await sandboxes.resume(params.id)),
    hibernateSandbox: ({ params }) => sandboxes.hibernate(params.id),
    wakeSandbox: async ({ params, body }) => woken(await sandboxes.wake(params.id, { idleMs: body.timeout })),
    setTimeout: ({ params, body }) => sandboxes.setTimeouts(params.id, body),
    forkSandbox: async ({ params, body, signal }) => {
      const { forks, ...rest } = await fork({ fleet, savedStates, sandboxes }, params.id, body, { signal })
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
  } satisfies Partial<Handlers>
}

/** A new sandbox, with its token and what became of its patches. */
export function created(
  sandbox: Sandbox,
  { tokens, patches }: Pick<ApiDeps, 'tokens' | 'patches'>,
): CreatedSandbox {
  const { token, expiresAt } = tokens.issue(sandbox.id)
  // Only one that comes from another can have any.
  const settled = sandbox.origin === null ? sandbox : withPatches(sandbox, patches)
  return { ...settled, token, tokenExpiresAt: expiresAt }
}

function withPatches(sandbox: Sandbox, patches: ApiDeps['patches']): WokenSandbox {
  const runs = patches.runs(sandbox.id)
  return runs.length === 0 ? sandbox : { ...sandbox, patches: runs }
}
