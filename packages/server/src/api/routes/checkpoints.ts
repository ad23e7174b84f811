import type { ApiDeps, Handlers } from '../route.ts'
import { created } from './sandboxes.ts'

export function checkpointRoutes({ checkpoints, patches, services, tokens }: ApiDeps) {
  return {
    createCheckpoint: ({ params, body }) => checkpoints.create(params.id, body.name),
    listCheckpoints: ({ params }) => ({ checkpoints: checkpoints.list(params.id) }),
    listAllCheckpoints: ({ query }) => checkpoints.page(query),
    restoreCheckpoint: async ({ params, hold }) => {
      const restored = await checkpoints.restore(params.id, params.cid)
      hold(params.id)
      return { ...restored, services: await services.outcomes(params.id) }
    },
    deleteCheckpoint: ({ params }) => checkpoints.delete(params.id, params.cid),
    getCheckpoint: ({ params }) => checkpoints.get(params.cid),
    createFromCheckpoint: async ({ params, body, idempotencyKey, signal }) => {
      const sandbox = await checkpoints.createSandbox(params.cid, body, { idempotencyKey, signal })
      return created(sandbox, { tokens, patches })
    },
    createPatch: ({ params, body }) => patches.create(params.cid, body),
    listPatches: ({ params }) => ({ patches: patches.list(params.cid) }),
    deletePatch: ({ params }) => patches.delete(params.cid, params.patch),
  } satisfies Partial<Handlers>
}
