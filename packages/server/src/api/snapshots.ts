import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function snapshotRoutes({ snapshots, checkpoints }: ApiDeps) {
  return {
    createSnapshot: ({ body }) => {
      if (body.sandbox !== undefined) return snapshots.createOf(body.sandbox, body)
      return snapshots.createFrom(body.checkpoint!, checkpoints.saved(body.checkpoint!), body)
    },
    listSnapshots: ({ query }) => snapshots.list(query),
    getSnapshot: ({ params }) => snapshots.get(params.sid),
    updateSnapshot: ({ params, body }) => snapshots.update(params.sid, body),
    deleteSnapshot: ({ params }) => snapshots.delete(params.sid),
    snapshotLineage: ({ params }) => snapshots.lineage(params.sid),
    exportSnapshot: () => {
      throw new IsletError('not_supported')
    },
    importSnapshot: () => {
      throw new IsletError('not_supported')
    },
  } satisfies Partial<Handlers>
}
