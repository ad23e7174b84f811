import { LIMITS } from '../limits.ts'
import * as patch from '../schemas/patch.ts'
import * as sandbox from '../schemas/sandbox.ts'
import * as timeout from '../schemas/timeout.ts'
import { SANDBOX, tagged } from './route.ts'

export const lifecycleRoutes = tagged('lifecycle', {
  pauseSandbox: {
    method: 'POST',
    path: `${SANDBOX}/pause`,
    summary: 'Pause a sandbox: freeze its processes and keep their memory; no effect if it is paused',
    response: sandbox.sandbox,
  },
  resumeSandbox: {
    method: 'POST',
    path: `${SANDBOX}/resume`,
    summary: 'Resume a paused sandbox; no effect if it runs',
    response: sandbox.wokenSandbox,
  },
  hibernateSandbox: {
    method: 'POST',
    path: `${SANDBOX}/hibernate`,
    summary:
      'Hibernate a sandbox: no CPU, and memory is freed if the engine can; no effect if it is hibernated',
    response: sandbox.sandbox,
  },
  wakeSandbox: {
    method: 'POST',
    path: `${SANDBOX}/wake`,
    summary: 'Wake a hibernated sandbox; if it runs, only the timeout is set',
    body: sandbox.wakeSandbox,
    response: sandbox.wokenSandbox,
  },
  setTimeout: {
    method: 'POST',
    path: `${SANDBOX}/timeout`,
    summary: 'Change the timeouts of a sandbox',
    body: timeout.timeouts,
    response: sandbox.sandbox,
  },
  forkSandbox: {
    method: 'POST',
    path: `${SANDBOX}/fork`,
    summary: 'Fork a sandbox: create copies of it as it is now',
    keyOnly: true,
    body: sandbox.forkSandbox,
    bodyBytes: LIMITS.contentBodyBytes,
    response: sandbox.forks,
    status: 201,
  },
  listSandboxPatches: {
    method: 'GET',
    path: `${SANDBOX}/patches`,
    summary: 'List the results of the patches of the checkpoint that the sandbox was made from',
    response: patch.patchRunList,
  },
})
