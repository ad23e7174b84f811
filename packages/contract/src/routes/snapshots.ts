import * as snapshot from '../schemas/snapshot.ts'
import type { Route } from './route.ts'

const SNAPSHOT = '/v1/snapshots/{sid}'

export const snapshotRoutes = {
  createSnapshot: {
    method: 'POST',
    path: '/v1/snapshots',
    summary: 'Publish a sandbox or checkpoint as a base for new sandboxes',
    tag: 'snapshots',
    body: snapshot.createSnapshot,
    response: snapshot.snapshotInfo,
    status: 201,
  },
  listSnapshots: {
    method: 'GET',
    path: '/v1/snapshots',
    summary: 'List snapshots, newest first',
    tag: 'snapshots',
    query: snapshot.listSnapshots,
    response: snapshot.snapshotPage,
    status: 200,
  },
  getSnapshot: {
    method: 'GET',
    path: SNAPSHOT,
    summary: 'One snapshot, by id or tag',
    tag: 'snapshots',
    response: snapshot.snapshotInfo,
    status: 200,
  },
  updateSnapshot: {
    method: 'PATCH',
    path: SNAPSHOT,
    summary: 'Tag, untag, rename or describe a snapshot',
    tag: 'snapshots',
    body: snapshot.updateSnapshot,
    response: snapshot.snapshotInfo,
    status: 200,
  },
  deleteSnapshot: {
    method: 'DELETE',
    path: SNAPSHOT,
    summary: 'Delete a snapshot; sandboxes and snapshots built on it keep what they need',
    tag: 'snapshots',
    response: null,
    status: 204,
  },
  snapshotLineage: {
    method: 'GET',
    path: `${SNAPSHOT}/lineage`,
    summary: 'What it descends from, and what descends from it',
    tag: 'snapshots',
    response: snapshot.snapshotLineage,
    status: 200,
  },
  exportSnapshot: {
    method: 'GET',
    path: `${SNAPSHOT}/export`,
    summary: 'The snapshot as one file for another machine: a tar, compressed with zstd',
    tag: 'snapshots',
    response: 'bytes',
    status: 200,
  },
  importSnapshot: {
    method: 'POST',
    path: '/v1/snapshots/import',
    summary: 'Make a snapshot from an exported file',
    tag: 'snapshots',
    fills: true,
    query: snapshot.importSnapshot,
    body: 'bytes',
    response: snapshot.snapshotInfo,
    status: 201,
  },
} as const satisfies Record<string, Route>
