// The options of the methods of Sandbox, which `guard` checks.

import { CLIENT } from '../client/settings.ts'
import { COPY, CREATE, LIST, ONCE, REUSE } from '../islet/create-once.ts'
import { SNAPSHOT } from '../islet/snapshots.ts'
import { ABORTABLE, type Checks, orText } from '../options.ts'
import { COMMAND } from '../process/exec.ts'
import { RUN_CODE } from './code.ts'
import type { Sandbox } from './sandbox.ts'

const REACH = { ...CLIENT, ...ABORTABLE }

export const STATIC_CHECKS: Checks<typeof Sandbox> = {
  create: [{ ...CLIENT, ...CREATE }],
  getOrCreate: [null, { ...CLIENT, ...REUSE }],
  connect: [null, REACH],
  get: [null, REACH],
  list: [{ ...CLIENT, ...LIST }],
  createFromCheckpoint: [null, { ...CLIENT, ...COPY, ...ONCE }],
  createCheckpointPatch: [null, { ...REACH, script: 1, description: 1 }],
  listCheckpointPatches: [null, REACH],
  deleteCheckpointPatch: [null, null, REACH],
}

export const CHECKS: Checks<Sandbox> = {
  getInfo: [ABORTABLE],
  isRunning: [ABORTABLE],
  pause: [ABORTABLE],
  resume: [ABORTABLE],
  hibernate: [ABORTABLE],
  wake: [{ timeout: 1, signal: 1 }],
  setTimeout: [null, ABORTABLE],
  update: [null, ABORTABLE],
  usage: [ABORTABLE],
  ports: [ABORTABLE],
  getUrl: [{ port: 1, protocol: 1 }, ABORTABLE],
  createPreviewURL: [null, ABORTABLE],
  listPreviewURLs: [ABORTABLE],
  deletePreviewURL: [null, ABORTABLE],
  getToken: [{ expiresIn: 1, signal: 1 }],
  kill: [ABORTABLE],
  createCheckpoint: [null, ABORTABLE],
  listCheckpoints: [ABORTABLE],
  restoreCheckpoint: [null, ABORTABLE],
  deleteCheckpoint: [null, ABORTABLE],
  listPatches: [ABORTABLE],
  createSnapshot: [SNAPSHOT],
  fork: [{ ...COPY, count: 1, signal: 1 }],
  runCommand: [null, { ...COMMAND, background: 1 }],
  runCode: [null, orText(RUN_CODE), RUN_CODE],
}
