// Where the output of each process is kept, and how much of it.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type ExecParsed, IsletError, newId } from '@islet/contract'
import { Held } from '../../control/held.ts'
import type { ProcessRecord } from '../../db/processes.ts'
import type { Log } from '../../log.ts'
import { KeptBytes } from './kept-bytes.ts'
import { type LogRoom, OutputLog, removeOutput } from './output-log.ts'
import { OutputReader } from './output-reader.ts'
import { OutputRoom } from './output-room.ts'

/** Output on the disk that waits to be sent in an answer. */
const WAITING = { eachBytes: 256 * 1024 * 1024, allBytes: 2 * 1024 * 1024 * 1024 }

export interface OutputOptions {
  dir: string
  /** Per process, by default. */
  keepBytes: number
  /** For all processes of a sandbox together, and so the maximum for one process. */
  sandboxBytes: number
  /** For all sandboxes together. */
  totalBytes: number
  /** False while the disk is too full to write. */
  hasRoom(): boolean
}

interface OutputParts {
  /** The log of a followed process. */
  running(processId: string): OutputLog | undefined
  /** Ids of the processes of a sandbox that have not ended. */
  unended(sandboxId: string): ReadonlySet<string>
  log: Log
}

type Owner = Pick<ProcessRecord, 'sandboxId' | 'id'>

export class Outputs {
  readonly #options: OutputOptions
  readonly #room: OutputRoom
  readonly #running: OutputParts['running']
  readonly #waiting: Held

  constructor(options: OutputOptions, parts: OutputParts) {
    this.#options = options
    this.#running = parts.running
    const { dir, sandboxBytes, totalBytes } = options
    this.#waiting = new Held({ ...WAITING, allBytes: Math.min(WAITING.allBytes, totalBytes) })
    this.#room = new OutputRoom({ dir, boundBytes: sandboxBytes, totalBytes, ...parts })
  }

  /** How much output of a new process is kept. `lower`: a service may have asked for more than this server allows now. */
  keepBytes({ keepOutput }: Pick<ExecParsed, 'keepOutput'>, { lower = false } = {}): number {
    const { keepBytes, sandboxBytes } = this.#options
    if (keepOutput === undefined) return keepBytes
    if (keepOutput <= sandboxBytes || lower) return Math.min(keepOutput, sandboxBytes)
    throw new IsletError('bad_request', `keepOutput is at most ${sandboxBytes} bytes on this server.`, {
      hint: 'ISLET_OUTPUT_SANDBOX of the server sets how much.',
    })
  }

  path({ sandboxId, id }: Owner): string {
    return join(this.#options.dir, sandboxId, `${id}.log`)
  }

  /** For output of a sandbox that is sent in an answer. */
  keep(sandboxId: string): KeptBytes {
    const path = join(this.#options.dir, sandboxId, `${newId('request')}.answer`)
    return new KeptBytes({ path, disk: this.#waiting.open(sandboxId), hasRoom: this.#options.hasRoom })
  }

  /** For a process that has printed nothing yet. */
  begin(record: ProcessRecord): OutputLog {
    return new OutputLog(this.path(record), record.keepOutputBytes, this.#roomOf(record))
  }

  /** For a process that an earlier server followed, or that has ended. */
  recover(record: ProcessRecord): OutputLog {
    return OutputLog.recover(this.path(record), record.keepOutputBytes, this.#roomOf(record))
  }

  /** The last `maxBytes` of the kept output; undefined if nothing is kept. */
  open(record: ProcessRecord, maxBytes = record.keepOutputBytes): OutputReader | undefined {
    const log = this.#running(record.id)
    if (log) return log.open(maxBytes)
    return OutputReader.open(this.path(record), Math.min(maxBytes, record.keepOutputBytes))
  }

  remove(owner: Owner): void {
    removeOutput(this.path(owner))
  }

  /** Without `removed` the files stay and only the counting ends. */
  async gone(sandboxId: string, options: { removed: boolean }): Promise<void> {
    this.#room.forget(sandboxId, options)
    if (options.removed) await rm(join(this.#options.dir, sandboxId), { recursive: true, force: true })
  }

  #roomOf({ sandboxId }: ProcessRecord): LogRoom {
    const { hasRoom } = this.#options
    return { hasRoom, wrote: (bytes) => this.#room.printed(sandboxId, bytes) }
  }
}
