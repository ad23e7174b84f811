import { LIMITS } from '../limits.ts'
import * as patch from '../schemas/patch.ts'
import * as sandbox from '../schemas/sandbox.ts'
import * as timeout from '../schemas/timeout.ts'
import { type Route, SANDBOX } from './route.ts'

export const lifecycleRoutes = {
  pauseSandbox: {
    method: 'POST',
    path: `${SANDBOX}/pause`,
    summary: 'Freeze all that runs inside, with its memory; one that is paused stays so',
    tag: 'lifecycle',
    response: sandbox.sandbox,
    status: 200,
  },
  resumeSandbox: {
    method: 'POST',
    path: `${SANDBOX}/resume`,
    summary: 'Let a paused sandbox go on; one that runs is answered as it is',
    tag: 'lifecycle',
    response: sandbox.wokenSandbox,
    status: 200,
  },
  hibernateSandbox: {
    method: 'POST',
    path: `${SANDBOX}/hibernate`,
    summary:
      'Put a sandbox to sleep: no CPU, memory given back where that can be done; one that is hibernated stays so',
    tag: 'lifecycle',
    response: sandbox.sandbox,
    status: 200,
  },
  wakeSandbox: {
    method: 'POST',
    path: `${SANDBOX}/wake`,
    summary: 'Wake a hibernated sandbox; one that runs is answered as it is, and may get the timeout',
    tag: 'lifecycle',
    body: sandbox.wakeSandbox,
    response: sandbox.wokenSandbox,
    status: 200,
  },
  setTimeout: {
    method: 'POST',
    path: `${SANDBOX}/timeout`,
    summary: 'Change what it does by itself after a while',
    tag: 'lifecycle',
    body: timeout.timeouts,
    response: sandbox.sandbox,
    status: 200,
  },
  forkSandbox: {
    method: 'POST',
    path: `${SANDBOX}/fork`,
    summary: 'Make copies of a sandbox as it is now',
    tag: 'lifecycle',
    keyOnly: true,
    body: sandbox.forkSandbox,
    bodyBytes: LIMITS.commandBodyBytes,
    response: sandbox.forks,
    status: 201,
  },
  listSandboxPatches: {
    method: 'GET',
    path: `${SANDBOX}/patches`,
    summary: 'What became of the patches of the checkpoint it was made from',
    tag: 'lifecycle',
    response: patch.patchRunList,
    status: 200,
  },
} as const satisfies Record<string, Route>
