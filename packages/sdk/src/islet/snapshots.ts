import {
  type CreateSnapshot,
  IsletError,
  type ListSnapshots,
  type SnapshotInfo,
  type SnapshotLineage,
  type SnapshotPage,
  type UpdateSnapshot,
} from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard, type Names } from '../options.ts'
import type { Content } from '../transport/body.ts'

interface Abortable {
  signal?: AbortSignal
}

/** What a snapshot is called. A tag that another one has moves. */
export interface SnapshotOptions extends Abortable {
  name?: string
  tag?: string
  description?: string
}

export interface ImportSnapshotOptions extends Abortable {
  /** Default: the one in the file. */
  name?: string
  /** Default: none, whatever the file says. */
  tag?: string
  /** Of a sandbox of the runtime `host`: also where this machine has another system. */
  otherHost?: boolean
}

/** Bases for new sandboxes: `create({ snapshot })`. One is named by its id or its tag. */
export class Snapshots {
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  /** Of a sandbox as it is now, or of a checkpoint. */
  create(
    of: { sandbox: string } | { checkpoint: string },
    options: SnapshotOptions = {},
  ): Promise<SnapshotInfo> {
    const { signal, ...rest } = options
    const body: CreateSnapshot = { ...of, ...rest }
    return this.#client.call('createSnapshot', { body, signal })
  }

  /** Newest first. */
  list(options: Omit<ListSnapshots, 'limit'> & { limit?: number } & Abortable = {}): Promise<SnapshotPage> {
    const { signal, ...query } = options
    return this.#client.call('listSnapshots', { query, signal })
  }

  async get(ref: string, options: Abortable = {}): Promise<SnapshotInfo> {
    return this.#client.call('getSnapshot', { params: { sid: checked(ref) }, ...options })
  }

  /** null takes its tag away. */
  async tag(ref: string, tag: string | null, options: Abortable = {}): Promise<SnapshotInfo> {
    return this.update(ref, { tag }, options)
  }

  async update(ref: string, change: UpdateSnapshot, options: Abortable = {}): Promise<SnapshotInfo> {
    return this.#client.call('updateSnapshot', { params: { sid: checked(ref) }, body: change, ...options })
  }

  /** Sandboxes and snapshots built on it keep what they need. */
  async delete(ref: string, options: Abortable = {}): Promise<void> {
    await this.#client.call('deleteSnapshot', { params: { sid: checked(ref) }, ...options })
  }

  /** What it descends from, itself first, and what descends from it. */
  async lineage(ref: string, options: Abortable = {}): Promise<SnapshotLineage> {
    return this.#client.call('snapshotLineage', { params: { sid: checked(ref) }, ...options })
  }

  /** The snapshot as one file for another machine: a tar, compressed with zstd. Without what was in its memory. */
  async export(ref: string, options: Abortable = {}): Promise<ReadableStream<Uint8Array>> {
    return this.#client.stream('exportSnapshot', { params: { sid: checked(ref) }, ...options })
  }

  /** Code `snapshot_damaged` unless the file is whole. */
  import(file: Content, options: ImportSnapshotOptions = {}): Promise<SnapshotInfo> {
    const { signal, ...query } = options
    return this.#client.call('importSnapshot', { query, content: file, signal })
  }
}

/** What is neither id nor tag must not lead to another address. A missing one is refused where the path is made. */
function checked(ref: string): string {
  if (!ref || /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(ref)) return ref
  throw new IsletError('snapshot_not_found', `There is no snapshot ${String(ref).slice(0, 128)}.`)
}

export const SNAPSHOT: Names<SnapshotOptions> = { name: 1, tag: 1, description: 1, signal: 1 }

guard(Snapshots.prototype, 'islet.snapshots', {
  create: [{ sandbox: 1, checkpoint: 1 }, SNAPSHOT],
  list: [{ name: 1, tag: 1, sandbox: 1, limit: 1, cursor: 1, signal: 1 }],
  get: [null, ABORTABLE],
  tag: [null, null, ABORTABLE],
  update: [null, null, ABORTABLE],
  delete: [null, ABORTABLE],
  lineage: [null, ABORTABLE],
  export: [null, ABORTABLE],
  import: [null, { name: 1, tag: 1, otherHost: 1, signal: 1 }],
})
