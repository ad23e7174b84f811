import {
  type CreatedSandbox,
  IsletError,
  type Sandbox,
  type UpdateSandboxParsed,
  type WokenSandbox,
} from '@islet/contract'
import { runOnce, streamOnce } from '../../data/processes/run.ts'
import { execLines } from '../http/exec-lines.ts'
import { urlAdder } from '../http/reached.ts'
import { progressing } from '../progress.ts'
import type { ApiDeps, Handlers } from '../route.ts'

export function sandboxRoutes({ sandboxes, patches, previews, processes, tokens }: ApiDeps) {
  const withUrl = urlAdder(previews)
  return {
    createSandbox: ({ body, idempotencyKey, signal, headers }) =>
      progressing(headers, 'sandbox', async (onProgress) => {
        const sandbox = await sandboxes.create(body, { idempotencyKey, signal, onProgress })
        return created(withUrl(sandbox, headers), { tokens, patches })
      }),
    listSandboxes: ({ query, headers }) => {
      const { sandboxes: found, ...page } = sandboxes.list(query)
      return { sandboxes: found.map((sandbox) => withUrl(sandbox, headers)), ...page }
    },
    getSandbox: ({ params, headers }) => withUrl(sandboxes.get(params.id), headers),
    updateSandbox: async ({ params, body, caller, headers }) => {
      if (caller?.kind !== 'admin') assertTokenMay(body)
      return withUrl(await sandboxes.update(params.id, body), headers)
    },
    deleteSandbox: async ({ params, headers }) => withUrl(await sandboxes.delete(params.id), headers),
    sandboxUsage: ({ params }) => sandboxes.usage(params.id),
    run: async ({ body, signal, headers }) => {
      if (!body.stream)
        return progressing(headers, 'result', (onProgress) =>
          runOnce(sandboxes, processes, body, { signal, onProgress }),
        )
      const command = await streamOnce(sandboxes, processes, body, { signal })
      return execLines(command, { sandboxId: command.sandboxId, autoResumed: false, encoding: body.encoding })
    },
    pauseSandbox: async ({ params, headers }) => withUrl(await sandboxes.pause(params.id), headers),
    resumeSandbox: async ({ params, headers }) =>
      withPatches(withUrl(await sandboxes.resume(params.id), headers), patches),
    hibernateSandbox: async ({ params, headers }) => withUrl(await sandboxes.hibernate(params.id), headers),
    wakeSandbox: async ({ params, body, headers }) =>
      withPatches(withUrl(await sandboxes.wake(params.id, { idleMs: body.timeout }), headers), patches),
    setTimeout: ({ params, body, headers }) => withUrl(sandboxes.setTimeouts(params.id, body), headers),
    forkSandbox: async ({ params, body, signal, headers }) => {
      const { forks, ...rest } = await sandboxes.fork(params.id, body, { signal })
      const issued = forks.map((result) => {
        if (result.ok) {
          const sandbox = created(withUrl(result.sandbox, headers), { tokens, patches })
          return { ok: true as const, sandbox }
        }
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
