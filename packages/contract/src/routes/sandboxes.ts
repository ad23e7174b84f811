import { LIMITS } from '../limits.ts'
import * as process from '../schemas/process.ts'
import * as sandbox from '../schemas/sandbox.ts'
import { type Route, SANDBOX } from './route.ts'

export const sandboxRoutes = {
  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    summary: 'Make a sandbox',
    tag: 'sandboxes',
    idempotent: true,
    body: sandbox.createSandbox,
    bodyBytes: LIMITS.contentBodyBytes,
    response: sandbox.createdSandbox,
    status: 201,
  },
  listSandboxes: {
    method: 'GET',
    path: '/v1/sandboxes',
    summary: 'List sandboxes, newest first',
    tag: 'sandboxes',
    query: sandbox.listSandboxes,
    response: sandbox.sandboxPage,
    status: 200,
  },
  getSandbox: {
    method: 'GET',
    path: SANDBOX,
    summary: 'One sandbox',
    tag: 'sandboxes',
    response: sandbox.sandboxDetail,
    status: 200,
  },
  updateSandbox: {
    method: 'PATCH',
    path: SANDBOX,
    summary: 'Change name, metadata, environment, resources or network',
    tag: 'sandboxes',
    body: sandbox.updateSandbox,
    bodyBytes: LIMITS.commandBodyBytes,
    response: sandbox.sandbox,
    status: 200,
  },
  deleteSandbox: {
    method: 'DELETE',
    path: SANDBOX,
    summary: 'Stop a sandbox and remove all it holds',
    tag: 'sandboxes',
    response: sandbox.sandbox,
    status: 200,
  },
  sandboxUsage: {
    method: 'GET',
    path: `${SANDBOX}/metrics`,
    summary: 'What it uses now',
    tag: 'sandboxes',
    response: sandbox.usage,
    status: 200,
  },
  run: {
    method: 'POST',
    path: '/v1/run',
    summary: 'Make a sandbox, run one command, collect its output, remove the sandbox',
    tag: 'sandboxes',
    body: process.run,
    bodyBytes: LIMITS.contentBodyBytes,
    response: process.runResult,
    status: 200,
  },
} as const satisfies Record<string, Route>
