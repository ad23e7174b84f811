// Where the output of each process is kept, and how much of it.
import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type ExecParsed, IsletError, isId, newId } from '@islet/contract'
import { Held } from '../../control/held.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { ProcessRecord } from '../../db/processes.ts'
import type { Log } from '../../log.ts'
import { KeptBytes } from './kept-bytes.ts'
import { type LogRoom, OutputLog, removeOutput } from './output-log.ts'
import { OutputReader } from './output-reader.ts'
import { OutputRoom } from './output-room.ts'

/** Output on the disk that waits to be sent in an answer. */
const WAITING = { eachBytes: 256 * 1024 * 1024, allBytes: 2 * 1024 * 1024 * 1024 }

/** How long the output of a stopped sandbox is kept, and of how many: each takes some files. */
const KEEP_STOPPED_MS = 3_600_000
const KEEP_STOPPED = 10_000
const SWEEP_MS = 60_000

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
  sandboxes: Pick<Sandboxes, 'stoppedAt'>
  log: Log
}

type Owner = Pick<ProcessRecord, 'sandboxId' | 'id'>

export class Outputs {
  readonly #options: OutputOptions
  readonly #room: OutputRoom
  readonly #running: OutputParts['running']
  readonly #waiting: Held
  readonly #log: Log
  /** Stopped sandboxes with output, and when they were stopped; the oldest first. */
  readonly #stopped = new Map<string, number>()
  readonly #sweep: NodeJS.Timeout

  constructor(options: OutputOptions, parts: OutputParts) {
    this.#options = options
    this.#running = parts.running
    const { dir, sandboxBytes, totalBytes } = options
    this.#waiting = new Held({ ...WAITING, allBytes: Math.min(WAITING.allBytes, totalBytes) })
    this.#room = new OutputRoom({ dir, boundBytes: sandboxBytes, totalBytes, ...parts })
    this.#log = parts.log
    this.#sweep = setInterval(() => this.#removeOld(), SWEEP_MS).unref()
    this.#findStopped(parts).catch((error) => parts.log.warn({ error }, 'old output not found'))
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
    return this.#open(record, Math.min(maxBytes, record.keepOutputBytes))
  }

  /** All that is on the disk: a little more than is promised to be kept, from the beginning of a segment. */
  openAll(record: ProcessRecord): OutputReader | undefined {
    return this.#open(record, Number.POSITIVE_INFINITY)
  }

  #open(record: ProcessRecord, maxBytes: number): OutputReader | undefined {
    const log = this.#running(record.id)
    return log ? log.open(maxBytes) : OutputReader.open(this.path(record), maxBytes)
  }

  remove(owner: Owner): void {
    removeOutput(this.path(owner))
  }

  /** Without `removed` only the counting ends. The files stay for a while, so that the output of a one-shot run can be read after it. */
  gone(sandboxId: string, { removed }: { removed: boolean }): void {
    this.#room.forget(sandboxId, { removed: false })
    if (!removed || !existsSync(join(this.#options.dir, sandboxId))) return
    this.#stopped.set(sandboxId, Date.now())
    this.#removeOld()
  }

  close(): void {
    clearInterval(this.#sweep)
  }

  /** Those that earlier servers left. */
  async #findStopped({ sandboxes }: OutputParts): Promise<void> {
    const found = (await readdir(this.#options.dir).catch(() => []))
      .filter((name) => isId('sandbox', name))
      .flatMap((id) => {
        const at = sandboxes.stoppedAt(id)
        return at === undefined ? [] : [[id, at] as const]
      })
    for (const [id, at] of found.sort(([, a], [, b]) => a - b)) this.#stopped.set(id, at)
    this.#removeOld()
  }

  #removeOld(): void {
    const until = Date.now() - KEEP_STOPPED_MS
    for (const [id, stoppedAt] of this.#stopped) {
      if (stoppedAt > until && this.#stopped.size <= KEEP_STOPPED) return
      this.#stopped.delete(id)
      this.#room.forget(id, { removed: true })
      rm(join(this.#options.dir, id), { recursive: true, force: true }).catch((error) =>
        this.#log.warn({ error, sandbox: id }, 'output of a stopped sandbox not removed'),
      )
    }
  }

  #roomOf({ sandboxId }: ProcessRecord): LogRoom {
    const { hasRoom } = this.#options
    return { hasRoom, wrote: (bytes) => this.#room.printed(sandboxId, bytes) }
  }
}
