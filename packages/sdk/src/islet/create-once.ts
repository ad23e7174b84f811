import {
  type CopySandbox,
  type CreatedSandbox,
  type CreateSandbox,
  createProgressShape,
  IsletError,
} from '@islet/contract/client'
import type { CallOptions, Client } from '../client/client.ts'
import { type Progressing, steps, work } from '../client/work.ts'
import type { Abortable, Names } from '../options.ts'
import type { CreateOptions, GetOrCreateOptions, ListOptions } from './sandboxes.ts'

export interface OnceOptions extends Abortable {
  /** The same key with the same options gives the same sandbox. Default: a new key for each call. */
  idempotencyKey?: string
}

export const ONCE: Names<OnceOptions> = { idempotencyKey: 1, signal: 1 }
/** The options of every way to create a sandbox. */
export const COPY: Names<CopySandbox> = {
  name: 1,
  description: 1,
  metadata: 1,
  project: 1,
  env: 1,
  files: 1,
  resources: 1,
  network: 1,
  user: 1,
  workdir: 1,
  timeout: 1,
  storeAccess: 1,
  keepAwake: 1,
}
/** Besides these, the options of a sandbox that is not made from another one. */
export const BASE = { runtime: 1, snapshot: 1, dependencies: 1, packages: 1, pip: 1, onProgress: 1 } as const
export const CREATE: Names<CreateOptions> = { ...BASE, ...COPY, ...ONCE }
/** `getOrCreate` takes the name as an argument. */
const { name: _name, ...UNNAMED } = COPY
export const REUSE: Names<GetOrCreateOptions> = { ...BASE, ...UNNAMED, signal: 1 }
export const LIST: Names<ListOptions> = {
  status: 1,
  name: 1,
  project: 1,
  metadata: 1,
  limit: 1,
  cursor: 1,
  offset: 1,
  sort: 1,
  direction: 1,
  signal: 1,
}

type CreateRoute = 'createSandbox' | 'createFromCheckpoint'

/** Creates a sandbox: retried safely, and undone if it is aborted. */
export async function createOnce<Name extends CreateRoute>(
  client: Client,
  name: Name,
  options: Pick<CallOptions<Name>, 'params' | 'body'> & OnceOptions & Progressing,
): Promise<CreatedSandbox> {
  const { signal, idempotencyKey, onProgress, ...rest } = options
  const call = { ...rest, idempotencyKey: idempotencyKey ?? newKey() } as CallOptions<CreateRoute>
  const isLong = onProgress !== undefined || mayBuild(rest.body as Base | undefined)
  try {
    if (isLong) return (await made(client, { ...call, signal, onProgress })).sandbox
    return await client.call(name as CreateRoute, { ...call, signal })
  } catch (error) {
    // Also if `onProgress` failed. The sandbox may exist already or soon, and only this call has the key to find it.
    const isLeft = signal?.aborted || !(error instanceof IsletError)
    if (isLeft && idempotencyKey === undefined) void undo(client, name, call, isLong)
    throw error
  }
}

type Base = Pick<CreateSandbox, 'runtime' | 'dependencies' | 'packages' | 'pip'>

/** A runtime or packages may have to be made first. Platforms end a silent call after some minutes, but not one with lines. */
export function mayBuild(body: Base = {}): boolean {
  const { runtime, dependencies, packages, pip } = body
  return runtime !== undefined || [dependencies, packages, pip].some((names) => names?.length)
}

function made(client: Client, call: CallOptions & Progressing): Promise<{ sandbox: CreatedSandbox }> {
  return work(client, 'createSandbox', call, createProgressShape)
}

async function undo(
  client: Client,
  name: CreateRoute,
  call: CallOptions<CreateRoute>,
  isLong: boolean,
): Promise<void> {
  try {
    const id = isLong ? await idOf(client, call) : (await client.call(name, call)).id
    if (id !== undefined) await client.call('deleteSandbox', { params: { id } })
  } catch {
    // The caller does not wait for this.
  }
}

/** Undefined if the server would have to build first: then there is no sandbox, and leaving ends the build. */
async function idOf(client: Client, call: CallOptions): Promise<string | undefined> {
  const lines = steps<{ sandbox: CreatedSandbox }>(client, 'createSandbox', call, createProgressShape)
  for await (const line of lines) return line.type === 'done' ? line.sandbox.id : undefined
}

/** Not crypto.randomUUID: a page served without TLS does not have it. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
