import {
  IsletError,
  type Prune,
  type Pruned,
  type RunResult,
  type RuntimeInfo,
  runProgressShape,
  type ServerInfo,
} from '@islet/contract/client'
import { Client } from '../client/client.ts'
import { CLIENT, type ClientOptions } from '../client/settings.ts'
import { work } from '../client/work.ts'
import { ABORTABLE, type Abortable, guard, type Names, refuseUnknown } from '../options.ts'
import { type Command, RUN, type RunOptions, split } from '../process/exec.ts'
import { runStreamed } from '../process/streamed-run.ts'
import { Events } from '../sandbox/events.ts'
import { Checkpoints } from './checkpoints.ts'
import { BASE, COPY, mayBuild } from './create-once.ts'
import { Images } from './images.ts'
import { type CreateOptions, Sandboxes } from './sandboxes.ts'
import { Snapshots } from './snapshots.ts'

/** `timeout` is the timeout of the command; the sandbox ends with the command. */
export type OneShotOptions = Omit<CreateOptions, 'idempotencyKey' | 'signal' | 'timeout' | 'keepAwake'> &
  Omit<RunOptions, 'files'>

const { files: _files, ...ONE_SHOT_RUN } = RUN
const ONE_SHOT: Names<OneShotOptions> = { ...BASE, ...COPY, ...ONE_SHOT_RUN }

export interface ListRuntimesOptions extends Abortable {
  /** Default: all. */
  limit?: number
  /** Leave out this many from the beginning. */
  offset?: number
}

const RUNTIMES: Names<ListRuntimesOptions> = { limit: 1, offset: 1, ...ABORTABLE }

export interface PruneOptions extends Prune, Abortable {}

const PRUNE: Names<PruneOptions> = { dryRun: 1, checkpoints: 1, olderThan: 1, ...ABORTABLE }

/** The server: its sandboxes, checkpoints, snapshots, images and runtimes. */
export class Islet {
  readonly url: string
  readonly sandboxes: Sandboxes
  readonly images: Images
  readonly checkpoints: Checkpoints
  readonly snapshots: Snapshots
  readonly #client: Client

  constructor(options: ClientOptions = {}) {
    refuseUnknown('Islet', options, CLIENT)
    this.#client = new Client(options)
    this.url = this.#client.url
    this.sandboxes = new Sandboxes(this.#client)
    this.images = new Images(this.#client)
    this.checkpoints = new Checkpoints(this.#client)
    this.snapshots = new Snapshots(this.#client)
  }

  /** The history of a sandbox, also if the sandbox is gone. */
  events(sandboxId: string): Events {
    return new Events(this.#client, sandboxId)
  }

  readonly runtimes = {
    list: async (options: ListRuntimesOptions = {}): Promise<RuntimeInfo[]> => {
      refuseUnknown('islet.runtimes.list', options, RUNTIMES)
      const { signal, ...query } = options
      return (await this.#client.call('listRuntimes', { query, signal })).runtimes
    },
  }

  /** Runs one command in a new sandbox, which is removed before this resolves. Aborting kills the command and removes the sandbox. */
  async run(command: Command, options: OneShotOptions = {}): Promise<RunResult> {
    const { onProgress, ...rest } = options
    const { streams, body, signal } = await split(command, rest)
    if (streams && onProgress)
      throw new IsletError('bad_request', 'onProgress cannot be combined with output as it comes.', {
        hint: 'Create a sandbox with onProgress first, then the same run has nothing to make.',
      })
    if (streams) return runStreamed(this.#client, 'run', { body }, streams)
    if (onProgress === undefined && !mayBuild(rest)) return this.#client.call('run', { body, signal })
    const call = { body, signal, onProgress }
    return (await work<{ result: RunResult }>(this.#client, 'run', call, runProgressShape)).result
  }

  /** Removes unused images, records of stopped sandboxes and, with `checkpoints`, their checkpoints. */
  prune(options: PruneOptions = {}): Promise<Pruned> {
    const { signal, ...body } = options
    return this.#client.call('prune', { body, signal })
  }

  /** Version, engine, capabilities, and what the machine has. */
  info(options: Abortable = {}): Promise<ServerInfo> {
    return this.#client.call('serverInfo', options)
  }

  /** Whether the server is up. Needs no key. */
  health(options: Abortable = {}): Promise<{ status: 'ok'; version: string }> {
    return this.#client.call('health', options)
  }
}

guard(Islet.prototype, 'islet', {
  run: [null, ONE_SHOT],
  prune: [PRUNE],
  info: [ABORTABLE],
  health: [ABORTABLE],
})
