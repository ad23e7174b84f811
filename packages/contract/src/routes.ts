// Every route of the native API, once. The server mounts and validates from this table, the SDK types its calls with
// it, OpenAPI is printed from it.
import type { z } from 'zod'
import * as file from './schemas/file.ts'
import * as image from './schemas/image.ts'
import * as process from './schemas/process.ts'
import * as sandbox from './schemas/sandbox.ts'
import * as server from './schemas/server.ts'

export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** {name} is a path parameter. */
  path: string
  summary: string
  tag: string
  /** Needs no API key. */
  open?: true
  /** Takes an Idempotency-Key header. */
  idempotent?: true
  /** Upgrades to a WebSocket. */
  websocket?: true
  query?: z.ZodType
  /** JSON; 'bytes' is a raw body of any size. */
  body?: z.ZodType | 'bytes'
  /** JSON; 'bytes' a raw body, 'lines' one JSON value per line, null no body. */
  response: z.ZodType | 'bytes' | 'lines' | null
  status: number
}

const SANDBOX = '/v1/sandboxes/{id}'
const PROCESS = `${SANDBOX}/processes/{pid}`

export const ROUTES = {
  health: {
    method: 'GET',
    path: '/health',
    summary: 'Is the server up?',
    tag: 'server',
    open: true,
    response: server.health,
    status: 200,
  },
  ready: {
    method: 'GET',
    path: '/ready',
    summary: 'Can it make sandboxes?',
    tag: 'server',
    open: true,
    response: server.ready,
    status: 200,
  },
  serverInfo: {
    method: 'GET',
    path: '/v1/info',
    summary: 'Version, engine and what it can do',
    tag: 'server',
    response: server.serverInfo,
    status: 200,
  },

  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    summary: 'Make a sandbox',
    tag: 'sandboxes',
    idempotent: true,
    body: sandbox.createSandbox,
    response: sandbox.sandbox,
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
    response: sandbox.sandbox,
    status: 200,
  },
  updateSandbox: {
    method: 'PATCH',
    path: SANDBOX,
    summary: 'Change name, metadata, environment or resources',
    tag: 'sandboxes',
    body: sandbox.updateSandbox,
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
    response: process.runResult,
    status: 200,
  },

  exec: {
    method: 'POST',
    path: `${SANDBOX}/exec`,
    summary: 'Run a command to its end',
    tag: 'processes',
    body: process.exec,
    response: process.execResult,
    status: 200,
  },
  startProcess: {
    method: 'POST',
    path: `${SANDBOX}/processes`,
    summary: 'Start a process',
    tag: 'processes',
    body: process.startProcess,
    response: process.processInfo,
    status: 201,
  },
  listProcesses: {
    method: 'GET',
    path: `${SANDBOX}/processes`,
    summary: 'List processes, newest first',
    tag: 'processes',
    query: process.listProcesses,
    response: process.processList,
    status: 200,
  },
  getProcess: {
    method: 'GET',
    path: PROCESS,
    summary: 'One process; may wait for its end',
    tag: 'processes',
    query: process.getProcess,
    response: process.processInfo,
    status: 200,
  },
  killProcess: {
    method: 'DELETE',
    path: PROCESS,
    summary: 'Kill a process and its session',
    tag: 'processes',
    response: process.processInfo,
    status: 200,
  },
  signalProcess: {
    method: 'POST',
    path: `${PROCESS}/signal`,
    summary: 'Send a signal',
    tag: 'processes',
    body: process.sendSignal,
    response: null,
    status: 204,
  },
  writeStdin: {
    method: 'POST',
    path: `${PROCESS}/stdin`,
    summary: 'Write to stdin or close it',
    tag: 'processes',
    body: process.writeStdin,
    response: null,
    status: 204,
  },
  resizeTerminal: {
    method: 'POST',
    path: `${PROCESS}/resize`,
    summary: 'Resize the terminal',
    tag: 'processes',
    body: process.resizeTerminal,
    response: null,
    status: 204,
  },
  processOutput: {
    method: 'GET',
    path: `${PROCESS}/output`,
    summary: 'What is kept of the output',
    tag: 'processes',
    query: process.getOutput,
    response: process.processOutput,
    status: 200,
  },
  attachProcess: {
    method: 'GET',
    path: `${PROCESS}/attach`,
    summary: 'Replay, then live output; stdin, resize and signals',
    tag: 'processes',
    websocket: true,
    query: process.attachQuery,
    response: null,
    status: 101,
  },

  readFile: {
    method: 'GET',
    path: `${SANDBOX}/files`,
    summary: 'Read a file; takes Range',
    tag: 'files',
    query: file.pathQuery,
    response: 'bytes',
    status: 200,
  },
  writeFile: {
    method: 'PUT',
    path: `${SANDBOX}/files`,
    summary: 'Write a file of any size, atomically',
    tag: 'files',
    query: file.writeFileQuery,
    body: 'bytes',
    response: file.fileEntry,
    status: 200,
  },
  removeFile: {
    method: 'DELETE',
    path: `${SANDBOX}/files`,
    summary: 'Remove a file or directory',
    tag: 'files',
    query: file.removeFileQuery,
    response: null,
    status: 204,
  },
  listFiles: {
    method: 'GET',
    path: `${SANDBOX}/files/list`,
    summary: 'List a directory',
    tag: 'files',
    query: file.listQuery,
    response: file.fileList,
    status: 200,
  },
  statFile: {
    method: 'GET',
    path: `${SANDBOX}/files/stat`,
    summary: 'What is at a path',
    tag: 'files',
    query: file.statQuery,
    response: file.fileEntry,
    status: 200,
  },
  makeDirectory: {
    method: 'POST',
    path: `${SANDBOX}/files/mkdir`,
    summary: 'Make a directory',
    tag: 'files',
    body: file.makeDirectory,
    response: file.fileEntry,
    status: 201,
  },
  movePath: {
    method: 'POST',
    path: `${SANDBOX}/files/move`,
    summary: 'Move or rename',
    tag: 'files',
    body: file.movePath,
    response: file.fileEntry,
    status: 200,
  },
  copyPath: {
    method: 'POST',
    path: `${SANDBOX}/files/copy`,
    summary: 'Copy',
    tag: 'files',
    body: file.copyPath,
    response: file.fileEntry,
    status: 200,
  },
  readArchive: {
    method: 'GET',
    path: `${SANDBOX}/files/archive`,
    summary: 'A directory as a tar',
    tag: 'files',
    query: file.archiveQuery,
    response: 'bytes',
    status: 200,
  },
  writeArchive: {
    method: 'PUT',
    path: `${SANDBOX}/files/archive`,
    summary: 'Unpack a tar (plain or gzip) into a directory',
    tag: 'files',
    query: file.extractQuery,
    body: 'bytes',
    response: file.extractResult,
    status: 200,
  },

  listRuntimes: {
    method: 'GET',
    path: '/v1/runtimes',
    summary: 'The catalog',
    tag: 'images',
    response: image.runtimeList,
    status: 200,
  },
  listImages: {
    method: 'GET',
    path: '/v1/images',
    summary: 'Images on this machine',
    tag: 'images',
    response: image.imageList,
    status: 200,
  },
  pullImage: {
    method: 'POST',
    path: '/v1/images/pull',
    summary: 'Pull an OCI image',
    tag: 'images',
    body: image.pullImage,
    response: 'lines',
    status: 200,
  },
  buildImage: {
    method: 'POST',
    path: '/v1/images/build',
    summary: 'Build the Debian base',
    tag: 'images',
    body: image.buildImage,
    response: 'lines',
    status: 200,
  },
  importImage: {
    method: 'POST',
    path: '/v1/images/import',
    summary: 'Import a directory or tar of the server machine',
    tag: 'images',
    body: image.importImage,
    response: 'lines',
    status: 200,
  },
  collectImages: {
    method: 'POST',
    path: '/v1/images/collect',
    summary: 'Remove images that nothing names or uses',
    tag: 'images',
    response: image.collectResult,
    status: 200,
  },
  removeImage: {
    method: 'DELETE',
    path: '/v1/images/{name}',
    summary: 'Remove a runtime name and its image',
    tag: 'images',
    response: null,
    status: 204,
  },
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof ROUTES
export type RouteOf<Name extends RouteName> = (typeof ROUTES)[Name]

type Input<Schema> = Schema extends z.ZodType ? z.input<Schema> : undefined
type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined
export type BodyOf<Name extends RouteName> =
  RouteOf<Name> extends { body: infer Body } ? Input<Body> : undefined
export type QueryOf<Name extends RouteName> =
  RouteOf<Name> extends { query: infer Query } ? Input<Query> : undefined
export type ResponseOf<Name extends RouteName> = Output<RouteOf<Name>['response']>

/** The path of a route with its parameters percent-encoded. */
export function routePath(name: RouteName, params: Record<string, string> = {}): string {
  return ROUTES[name].path.replace(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(params[key] ?? ''))
}
