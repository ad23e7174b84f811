import type { CopySandbox, CreatedSandbox } from '@islet/contract/client'
import type { CallOptions, Client } from '../client/client.ts'
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
export const CREATE: Names<CreateOptions> = { runtime: 1, snapshot: 1, ...COPY, ...ONCE }
/** `getOrCreate` takes the name as an argument. */
const { name: _name, ...UNNAMED } = COPY
export const REUSE: Names<GetOrCreateOptions> = { runtime: 1, snapshot: 1, ...UNNAMED, signal: 1 }
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
  options: Pick<CallOptions<Name>, 'params' | 'body'> & OnceOptions,
): Promise<CreatedSandbox> {
  const { signal, idempotencyKey, ...rest } = options
  const call = { ...rest, idempotencyKey: idempotencyKey ?? newKey() } as CallOptions<CreateRoute>
  try {
    return await client.call(name as CreateRoute, { ...call, signal })
  } catch (error) {
    // The sandbox may exist already or soon, and only this call has the key to find it.
    if (signal?.aborted && idempotencyKey === undefined) void undo(client, name, call)
    throw error
  }
}

async function undo(client: Client, name: CreateRoute, call: CallOptions<CreateRoute>): Promise<void> {
  try {
    const { id } = await client.call(name, call)
    await client.call('deleteSandbox', { params: { id } })
  } catch {
    // The caller does not wait for this.
  }
}

/** Not crypto.randomUUID: a page served without TLS does not have it. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
