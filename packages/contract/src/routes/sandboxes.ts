import { LIMITS } from '../limits.ts'
import * as process from '../schemas/process.ts'
import * as sandbox from '../schemas/sandbox.ts'
import { SANDBOX, tagged } from './route.ts'

export const sandboxRoutes = tagged('sandboxes', {
  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    summary: 'Create a sandbox',
    idempotent: true,
    progress: sandbox.createProgress,
    body: sandbox.createSandbox,
    bodyBytes: LIMITS.contentBodyBytes,
    response: sandbox.createdSandbox,
    status: 201,
  },
  listSandboxes: {
    method: 'GET',
    path: '/v1/sandboxes',
    summary: 'List sandboxes, by default newest first',
    query: sandbox.listSandboxes,
    response: sandbox.sandboxPage,
  },
  getSandbox: {
    method: 'GET',
    path: SANDBOX,
    summary: 'Get one sandbox',
    response: sandbox.sandboxDetail,
  },
  updateSandbox: {
    method: 'PATCH',
    path: SANDBOX,
    summary: 'Change name, metadata, environment, resources or network',
    body: sandbox.updateSandbox,
    bodyBytes: LIMITS.commandBodyBytes,
    response: sandbox.sandbox,
  },
  deleteSandbox: {
    method: 'DELETE',
    path: SANDBOX,
    summary: 'Stop a sandbox and remove everything in it',
    response: sandbox.sandbox,
  },
  sandboxUsage: {
    method: 'GET',
    path: `${SANDBOX}/metrics`,
    summary: 'Get the memory, CPU, processes and disk that a sandbox uses now',
    response: sandbox.usage,
  },
  run: {
    method: 'POST',
    path: '/v1/run',
    summary:
      'Create a sandbox, run one command, return its output (with stream, as it comes), remove the sandbox',
    progress: process.runProgress,
    body: process.run,
    bodyBytes: LIMITS.contentBodyBytes,
    response: process.runResult,
    lines: process.execLine,
  },
})
