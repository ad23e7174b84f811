import * as snapshot from '../schemas/snapshot.ts'
import { tagged } from './route.ts'

const SNAPSHOT = '/v1/snapshots/{sid}'

export const snapshotRoutes = tagged('snapshots', {
  createSnapshot: {
    method: 'POST',
    path: '/v1/snapshots',
    summary: 'Publish a sandbox or checkpoint as a base for new sandboxes',
    body: snapshot.createSnapshot,
    response: snapshot.snapshotInfo,
    status: 201,
  },
  listSnapshots: {
    method: 'GET',
    path: '/v1/snapshots',
    summary: 'List snapshots, by default newest first',
    query: snapshot.listSnapshots,
    response: snapshot.snapshotPage,
  },
  getSnapshot: {
    method: 'GET',
    path: SNAPSHOT,
    summary: 'Get one snapshot, by id or tag',
    response: snapshot.snapshotInfo,
  },
  updateSnapshot: {
    method: 'PATCH',
    path: SNAPSHOT,
    summary: 'Tag, untag, rename or describe a snapshot',
    body: snapshot.updateSnapshot,
    response: snapshot.snapshotInfo,
  },
  deleteSnapshot: {
    method: 'DELETE',
    path: SNAPSHOT,
    summary: 'Delete a snapshot; sandboxes and snapshots built on it keep the files they need',
    response: null,
  },
  snapshotLineage: {
    method: 'GET',
    path: `${SNAPSHOT}/lineage`,
    summary: 'Get the ancestors and descendants of a snapshot',
    response: snapshot.snapshotLineage,
  },
  exportSnapshot: {
    method: 'GET',
    path: `${SNAPSHOT}/export`,
    summary: 'Download a snapshot as one file for another machine: a tar compressed with zstd',
    response: 'bytes',
  },
  importSnapshot: {
    method: 'POST',
    path: '/v1/snapshots/import',
    summary: 'Create a snapshot from an exported file',
    fills: true,
    query: snapshot.importSnapshot,
    body: 'bytes',
    response: snapshot.snapshotInfo,
    status: 201,
  },
})
