import { LIMITS } from '../limits.ts'
import * as checkpoint from '../schemas/checkpoint.ts'
import * as patch from '../schemas/patch.ts'
import * as sandbox from '../schemas/sandbox.ts'
import { type Route, SANDBOX } from './route.ts'

const CHECKPOINT = `${SANDBOX}/checkpoints/{cid}` as const
const ANY_CHECKPOINT = '/v1/checkpoints/{cid}'

export const checkpointRoutes = {
  createCheckpoint: {
    method: 'POST',
    path: `${SANDBOX}/checkpoints`,
    summary: 'Save a sandbox as it is now, under a name',
    tag: 'checkpoints',
    body: checkpoint.createCheckpoint,
    response: checkpoint.checkpointInfo,
    status: 201,
  },
  listCheckpoints: {
    method: 'GET',
    path: `${SANDBOX}/checkpoints`,
    summary: 'List the checkpoints of a sandbox, oldest first; also of one that is gone',
    tag: 'checkpoints',
    response: checkpoint.checkpointList,
    status: 200,
  },
  listAllCheckpoints: {
    method: 'GET',
    path: '/v1/checkpoints',
    summary: 'List the checkpoints of all sandboxes, newest first; also of those that are gone',
    tag: 'checkpoints',
    query: checkpoint.listCheckpoints,
    response: checkpoint.checkpointPage,
    status: 200,
  },
  restoreCheckpoint: {
    method: 'POST',
    path: `${CHECKPOINT}/restore`,
    summary: 'Take the sandbox back to how it was then',
    tag: 'checkpoints',
    response: checkpoint.restoredSandbox,
    status: 200,
  },
  deleteCheckpoint: {
    method: 'DELETE',
    path: CHECKPOINT,
    summary: 'Forget a checkpoint; what others are built on stays',
    tag: 'checkpoints',
    response: null,
    status: 204,
  },
  getCheckpoint: {
    method: 'GET',
    path: ANY_CHECKPOINT,
    summary: 'One checkpoint',
    tag: 'checkpoints',
    response: checkpoint.checkpointInfo,
    status: 200,
  },
  createFromCheckpoint: {
    method: 'POST',
    path: `${ANY_CHECKPOINT}/sandboxes`,
    summary: 'Make a sandbox that begins as this checkpoint',
    tag: 'checkpoints',
    idempotent: true,
    body: sandbox.copySandbox,
    bodyBytes: LIMITS.commandBodyBytes,
    response: sandbox.createdSandbox,
    status: 201,
  },
  createPatch: {
    method: 'POST',
    path: `${ANY_CHECKPOINT}/patches`,
    summary: 'Add a script that is run once in every sandbox made from this checkpoint',
    tag: 'checkpoints',
    body: patch.createPatch,
    bodyBytes: LIMITS.commandBodyBytes,
    response: patch.patchInfo,
    status: 201,
  },
  listPatches: {
    method: 'GET',
    path: `${ANY_CHECKPOINT}/patches`,
    summary: 'List the patches, in their order',
    tag: 'checkpoints',
    response: patch.patchList,
    status: 200,
  },
  deletePatch: {
    method: 'DELETE',
    path: `${ANY_CHECKPOINT}/patches/{patch}`,
    summary: 'Remove a patch; where it was applied it stays so',
    tag: 'checkpoints',
    response: null,
    status: 204,
  },
} as const satisfies Record<string, Route>
