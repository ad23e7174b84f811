import type {
  CreateSnapshot,
  ListSnapshots,
  SnapshotInfo,
  SnapshotLineage,
  SnapshotPage,
  UpdateSnapshot,
} from '@islet/contract/client'
import { Part } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'
import type { Content } from '../transport/body.ts'
import { checkedSnapshot } from './refs.ts'

/** If another snapshot has the tag, the tag moves to the new one. */
export interface SnapshotOptions extends Abortable {
  name?: string
  tag?: string
  description?: string
}

export interface ImportSnapshotOptions extends Abortable {
  /** Default: the name in the file. */
  name?: string
  /** Default: no tag, even if the file has one. */
  tag?: string
  /** Allow a snapshot of the runtime `host` from a machine with another operating system. Default: false. */
  otherHost?: boolean
}

/** Bases for new sandboxes: `create({ snapshot })`. `ref` is the id or tag of a snapshot. */
export class Snapshots extends Part {
  /** Publishes a sandbox as it is now, or a checkpoint. */
  create(
    of: { sandbox: string } | { checkpoint: string },
    options: SnapshotOptions = {},
  ): Promise<SnapshotInfo> {
    const { signal, ...rest } = options
    const body: CreateSnapshot = { ...of, ...rest }
    return this.client.call('createSnapshot', { body, signal })
  }

  /** One page, by default newest first; pass its `cursor` for the next, or count with `offset`. */
  list(options: ListSnapshots & Abortable = {}): Promise<SnapshotPage> {
    const { signal, ...query } = options
    return this.client.call('listSnapshots', { query, signal })
  }

  async get(ref: string, options: Abortable = {}): Promise<SnapshotInfo> {
    return this.client.call('getSnapshot', { params: { sid: checkedSnapshot(ref) }, ...options })
  }

  /** null removes the tag. */
  async tag(ref: string, tag: string | null, options: Abortable = {}): Promise<SnapshotInfo> {
    return this.update(ref, { tag }, options)
  }

  async update(ref: string, change: UpdateSnapshot, options: Abortable = {}): Promise<SnapshotInfo> {
    return this.client.call('updateSnapshot', {
      params: { sid: checkedSnapshot(ref) },
      body: change,
      ...options,
    })
  }

  /** Sandboxes and snapshots that are built on it keep the files they need. */
  async delete(ref: string, options: Abortable = {}): Promise<void> {
    await this.client.call('deleteSnapshot', { params: { sid: checkedSnapshot(ref) }, ...options })
  }

  /** Its ancestors, itself first, and its descendants. */
  async lineage(ref: string, options: Abortable = {}): Promise<SnapshotLineage> {
    return this.client.call('snapshotLineage', { params: { sid: checkedSnapshot(ref) }, ...options })
  }

  /** The snapshot as one file for another machine: a tar compressed with zstd, without saved memory. */
  async export(ref: string, options: Abortable = {}): Promise<ReadableStream<Uint8Array>> {
    return this.client.stream('exportSnapshot', { params: { sid: checkedSnapshot(ref) }, ...options })
  }

  /** Code `snapshot_damaged` if the file is not whole. */
  import(file: Content, options: ImportSnapshotOptions = {}): Promise<SnapshotInfo> {
    const { signal, ...query } = options
    return this.client.call('importSnapshot', { query, content: file, signal })
  }
}

export const SNAPSHOT: Names<SnapshotOptions> = { name: 1, tag: 1, description: 1, signal: 1 }

const LIST: Names<ListSnapshots & Abortable> = {
  name: 1,
  tag: 1,
  sandbox: 1,
  limit: 1,
  cursor: 1,
  offset: 1,
  sort: 1,
  direction: 1,
  signal: 1,
}

guard(Snapshots.prototype, 'islet.snapshots', {
  create: [{ sandbox: 1, checkpoint: 1 }, SNAPSHOT],
  list: [LIST],
  get: [null, ABORTABLE],
  tag: [null, null, ABORTABLE],
  update: [null, null, ABORTABLE],
  delete: [null, ABORTABLE],
  lineage: [null, ABORTABLE],
  export: [null, ABORTABLE],
  import: [null, { name: 1, tag: 1, otherHost: 1, signal: 1 }],
})
