import { LIMITS } from '../limits.ts'
import * as checkpoint from '../schemas/checkpoint.ts'
import * as patch from '../schemas/patch.ts'
import * as sandbox from '../schemas/sandbox.ts'
import { SANDBOX, tagged } from './route.ts'

const CHECKPOINT = `${SANDBOX}/checkpoints/{cid}` as const
const ANY_CHECKPOINT = '/v1/checkpoints/{cid}'

export const checkpointRoutes = tagged('checkpoints', {
  createCheckpoint: {
    method: 'POST',
    path: `${SANDBOX}/checkpoints`,
    summary: 'Save a sandbox as it is now, under a name',
    body: checkpoint.createCheckpoint,
    response: checkpoint.checkpointInfo,
    status: 201,
  },
  listCheckpoints: {
    method: 'GET',
    path: `${SANDBOX}/checkpoints`,
    summary: 'List the checkpoints of a sandbox, oldest first; also of a stopped sandbox',
    response: checkpoint.checkpointList,
  },
  listAllCheckpoints: {
    method: 'GET',
    path: '/v1/checkpoints',
    summary: 'List the checkpoints of all sandboxes, newest first; also of stopped sandboxes',
    query: checkpoint.listCheckpoints,
    response: checkpoint.checkpointPage,
  },
  restoreCheckpoint: {
    method: 'POST',
    path: `${CHECKPOINT}/restore`,
    summary: 'Restore the sandbox to this checkpoint',
    response: checkpoint.restoredSandbox,
  },
  deleteCheckpoint: {
    method: 'DELETE',
    path: CHECKPOINT,
    summary: 'Delete a checkpoint; files that others are built on stay',
    response: null,
  },
  getCheckpoint: {
    method: 'GET',
    path: ANY_CHECKPOINT,
    summary: 'Get one checkpoint',
    response: checkpoint.checkpointInfo,
  },
  createFromCheckpoint: {
    method: 'POST',
    path: `${ANY_CHECKPOINT}/sandboxes`,
    summary: 'Create a sandbox from this checkpoint',
    idempotent: true,
    body: sandbox.copySandbox,
    bodyBytes: LIMITS.contentBodyBytes,
    response: sandbox.createdSandbox,
    status: 201,
  },
  createPatch: {
    method: 'POST',
    path: `${ANY_CHECKPOINT}/patches`,
    summary: 'Add a script that runs once in every sandbox made from this checkpoint',
    body: patch.createPatch,
    bodyBytes: LIMITS.commandBodyBytes,
    response: patch.patchInfo,
    status: 201,
  },
  listPatches: {
    method: 'GET',
    path: `${ANY_CHECKPOINT}/patches`,
    summary: 'List the patches, in the order in which they are applied',
    response: patch.patchList,
  },
  deletePatch: {
    method: 'DELETE',
    path: `${ANY_CHECKPOINT}/patches/{patch}`,
    summary: 'Delete a patch; sandboxes that already ran it keep its effects',
    response: null,
  },
})
