import { urlAdder } from '../http/reached.ts'
import type { ApiDeps, Handlers } from '../route.ts'
import { created } from './sandboxes.ts'

export function checkpointRoutes({ checkpoints, patches, previews, services, tokens }: ApiDeps) {
  const withUrl = urlAdder(previews)
  return {
    createCheckpoint: ({ params, body }) => checkpoints.create(params.id, body.name),
    listCheckpoints: ({ params }) => ({ checkpoints: checkpoints.list(params.id) }),
    listAllCheckpoints: ({ query }) => checkpoints.page(query),
    restoreCheckpoint: async ({ params, hold, headers }) => {
      const { sandbox, memory } = await checkpoints.restore(params.id, params.cid)
      hold(params.id)
      return { sandbox: withUrl(sandbox, headers), memory, services: await services.outcomes(params.id) }
    },
    deleteCheckpoint: ({ params }) => checkpoints.delete(params.id, params.cid),
    getCheckpoint: ({ params }) => checkpoints.get(params.cid),
    createFromCheckpoint: async ({ params, body, idempotencyKey, signal, headers }) => {
      const sandbox = await checkpoints.createSandbox(params.cid, body, { idempotencyKey, signal })
      return created(withUrl(sandbox, headers), { tokens, patches })
    },
    createPatch: ({ params, body }) => patches.create(params.cid, body),
    listPatches: ({ params }) => ({ patches: patches.list(params.cid) }),
    deletePatch: ({ params }) => patches.delete(params.cid, params.patch),
  } satisfies Partial<Handlers>
}
