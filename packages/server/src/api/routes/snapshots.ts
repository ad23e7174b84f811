import { begun } from '../http/begun.ts'
import { type ApiDeps, Bytes, type Handlers } from '../route.ts'

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
    exportSnapshot: async ({ params, isHead }) => {
      const { id } = snapshots.get(params.sid)
      const headers = {
        'Content-Type': 'application/zstd',
        'Content-Disposition': `attachment; filename="${id}.tar.zst"`,
      }
      return new Bytes(isHead ? undefined : await begun(snapshots.export(id)), headers)
    },
    importSnapshot: ({ query, body, signal }) => snapshots.import(body, query, { signal }),
  } satisfies Partial<Handlers>
}
