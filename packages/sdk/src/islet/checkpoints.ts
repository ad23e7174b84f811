import type { CheckpointInfo, CheckpointPage, CopySandbox, ListCheckpoints } from '@islet/contract/client'
import { Part } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard, type Names, orText } from '../options.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { type FileToWrite, toFiles } from '../transport/files.ts'
import { COPY, createOnce, ONCE, type OnceOptions } from './create-once.ts'
import { Patches } from './patches.ts'
import { checkedCheckpoint } from './refs.ts'

/** Missing options are taken from the checkpoint; `env` is merged. */
export interface FromCheckpointOptions extends Omit<CopySandbox, 'files'>, OnceOptions {
  /** As of `sandboxes.create`. */
  files?: readonly FileToWrite[]
}

export interface ListCheckpointsOptions extends ListCheckpoints, Abortable {}

/** Saved states of sandboxes, by their id alone. A checkpoint outlives its sandbox. */
export class Checkpoints extends Part {
  readonly patches = new Patches(this.client)

  async get(id: string, options: Abortable = {}): Promise<CheckpointInfo> {
    return this.client.call('getCheckpoint', { params: { cid: checkedCheckpoint(id) }, ...options })
  }

  /** The checkpoints of one sandbox, oldest first; also if the sandbox is gone. */
  list(sandboxId: string, options?: Abortable): Promise<CheckpointInfo[]>
  /** One page of the checkpoints of all sandboxes, newest first; pass its `cursor` for the next page. */
  list(options?: ListCheckpointsOptions): Promise<CheckpointPage>
  async list(
    of: string | ListCheckpointsOptions = {},
    options: Abortable = {},
  ): Promise<CheckpointInfo[] | CheckpointPage> {
    if (typeof of === 'string')
      return (await this.client.call('listCheckpoints', { params: { id: of }, ...options })).checkpoints
    const { signal, ...query } = of
    return this.client.call('listAllCheckpoints', { query, signal })
  }

  /** All pages, one checkpoint at a time. */
  async *all(options: ListCheckpointsOptions = {}): AsyncGenerator<CheckpointInfo> {
    let { cursor, offset } = options
    do {
      const page = await this.list({ ...options, cursor, offset })
      yield* page.checkpoints
      cursor = page.cursor
      offset = undefined
    } while (cursor !== undefined)
  }

  /** A new sandbox that starts from the checkpoint, also if the checkpoint's own sandbox is gone. */
  async createSandbox(id: string, options: FromCheckpointOptions = {}): Promise<Sandbox> {
    const { signal, idempotencyKey, files, ...rest } = options
    const body = { ...rest, files: await toFiles(files, signal) }
    const call = { params: { cid: checkedCheckpoint(id) }, body, signal, idempotencyKey }
    return new Sandbox(this.client, await createOnce(this.client, 'createFromCheckpoint', call))
  }

  /** Files that sandboxes, checkpoints or snapshots are built on stay. */
  async delete(id: string, options: Abortable = {}): Promise<void> {
    const { sandboxId } = await this.get(id, options)
    await this.client.call('deleteCheckpoint', { params: { id: sandboxId, cid: id }, ...options })
  }
}

const LIST: Names<ListCheckpointsOptions> = {
  name: 1,
  sandbox: 1,
  limit: 1,
  cursor: 1,
  offset: 1,
  signal: 1,
}

guard(Checkpoints.prototype, 'islet.checkpoints', {
  get: [null, ABORTABLE],
  list: [orText(LIST), ABORTABLE],
  all: [LIST],
  createSandbox: [null, { ...COPY, ...ONCE }],
  delete: [null, ABORTABLE],
})
