import {
  type CheckpointInfo,
  type CheckpointPage,
  type CopySandbox,
  IsletError,
  isId,
  type ListCheckpoints,
  type RestoredSandbox,
  type Forks as WireForks,
} from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { errorFromBody } from '../errors.ts'
import { ABORTABLE, guard, type Names, orText } from '../options.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { COPY, createOnce, ONCE, type OnceOptions } from './create-once.ts'
import { Patches } from './patches.ts'

interface Abortable {
  signal?: AbortSignal
}

/** What is not given is as it was in the checkpoint; `env` is merged. */
export interface FromCheckpointOptions extends CopySandbox, OnceOptions {}

/** What is not given is as it is in the source; `env` is merged. When it is aborted no fork stays. */
export interface ForkOptions extends CopySandbox, Abortable {}

export type ListCheckpointsOptions = Omit<ListCheckpoints, 'limit'> & { limit?: number } & Abortable

export type ForkResult = { ok: true; sandbox: Sandbox } | { ok: false; error: IsletError }

/** One for each fork that was asked for. */
export interface ForkResults extends Array<ForkResult> {
  /** How long the source stood still. */
  frozenMs: number
  /** Whether what ran in the source goes on in the forks. */
  memory: boolean
}

/** Saved states of sandboxes, found by id alone. They outlive their sandbox. */
export class Checkpoints {
  readonly patches: Patches
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
    this.patches = new Patches(client)
  }

  async get(id: string, options: Abortable = {}): Promise<CheckpointInfo> {
    return this.#client.call('getCheckpoint', { params: { cid: checked(id) }, ...options })
  }

  /** Of one sandbox, oldest first; also of one that is gone. */
  list(sandboxId: string, options?: Abortable): Promise<CheckpointInfo[]>
  /** Of all sandboxes, one page, newest first; pass its `cursor` for the next. */
  list(options?: ListCheckpointsOptions): Promise<CheckpointPage>
  async list(
    of: string | ListCheckpointsOptions = {},
    options: Abortable = {},
  ): Promise<CheckpointInfo[] | CheckpointPage> {
    if (typeof of === 'string')
      return (await this.#client.call('listCheckpoints', { params: { id: of }, ...options })).checkpoints
    const { signal, ...query } = of
    return this.#client.call('listAllCheckpoints', { query, signal })
  }

  /** Every page, one checkpoint at a time. */
  async *all(options: ListCheckpointsOptions = {}): AsyncGenerator<CheckpointInfo> {
    let { cursor } = options
    do {
      const page = await this.list({ ...options, cursor })
      yield* page.checkpoints
      cursor = page.cursor
    } while (cursor !== undefined)
  }

  /** A new sandbox that begins as the checkpoint, whatever became of the one it was made of. */
  async createSandbox(id: string, options: FromCheckpointOptions = {}): Promise<Sandbox> {
    const { signal, idempotencyKey, ...body } = options
    const call = { params: { cid: checked(id) }, body, signal, idempotencyKey }
    return new Sandbox(this.#client, await createOnce(this.#client, 'createFromCheckpoint', call))
  }

  /** What sandboxes, checkpoints and snapshots are built on stays. */
  async delete(id: string, options: Abortable = {}): Promise<void> {
    const { sandboxId } = await this.get(id, options)
    await new SandboxCheckpoints(this.#client, sandboxId).delete(id, options)
  }
}

/** The checkpoints of one sandbox. */
export class SandboxCheckpoints {
  readonly #client: Client
  readonly #sandboxId: string

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#sandboxId = sandboxId
  }

  create(body: { name: string }, options: Abortable = {}): Promise<CheckpointInfo> {
    const params = { id: this.#sandboxId }
    return this.#client.call('createCheckpoint', { params, body, ...options })
  }

  async list(options: Abortable = {}): Promise<CheckpointInfo[]> {
    const params = { id: this.#sandboxId }
    return (await this.#client.call('listCheckpoints', { params, ...options })).checkpoints
  }

  async restore(id: string, options: Abortable = {}): Promise<RestoredSandbox> {
    const params = { id: this.#sandboxId, cid: checked(id) }
    return this.#client.call('restoreCheckpoint', { params, ...options })
  }

  async delete(id: string, options: Abortable = {}): Promise<void> {
    const params = { id: this.#sandboxId, cid: checked(id) }
    await this.#client.call('deleteCheckpoint', { params, ...options })
  }
}

/** Each succeeds or fails by itself. */
export async function fork(
  client: Client,
  sandboxId: string,
  { signal, ...body }: ForkOptions & { count: number },
): Promise<ForkResults> {
  const { forks, ...rest } = await client.call('forkSandbox', { params: { id: sandboxId }, body, signal })
  return Object.assign(
    forks.map((result) => toResult(client, result)),
    rest,
  )
}

function toResult(client: Client, result: WireForks['forks'][number]): ForkResult {
  if (result.ok) return { ok: true, sandbox: new Sandbox(client, result.sandbox) }
  return { ok: false, error: errorFromBody(result.error) }
}

/** What is no id must not lead to another address. A missing one is refused where the path is made. */
function checked(id: string): string {
  if (!id || isId('checkpoint', id)) return id
  throw new IsletError('checkpoint_not_found', `There is no checkpoint ${String(id).slice(0, 64)}.`, {
    hint: 'It takes the id of a checkpoint, ckp-…; a name is no id.',
  })
}

const LIST: Names<ListCheckpointsOptions> = { name: 1, sandbox: 1, limit: 1, cursor: 1, signal: 1 }

guard(Checkpoints.prototype, 'islet.checkpoints', {
  get: [null, ABORTABLE],
  list: [orText(LIST), ABORTABLE],
  all: [LIST],
  createSandbox: [null, { ...COPY, ...ONCE }],
  delete: [null, ABORTABLE],
})
