// The rows of processes. Each change is written in one transaction with its events.
import type { Events } from '../../control/events.ts'
import type { Db } from '../../db/db.ts'
import { type ProcessRecord, ProcessTable } from '../../db/processes.ts'

/** Characters of a command in an event. */
const MAX_COMMAND_LENGTH = 200

export class ProcessRecords {
  readonly table: ProcessTable
  readonly #db: Db
  readonly #events: Events

  constructor({ db, events }: { db: Db; events: Events }) {
    this.table = new ProcessTable(db)
    this.#db = db
    this.#events = events
  }

  /** The process is about to start. */
  begun(record: ProcessRecord): void {
    const { id, sandboxId, service, terminalId } = record
    const command = shortened(record.command)
    this.#db.transaction(() => {
      this.table.insert(record)
      this.#events.add(sandboxId, 'process.started', {
        id,
        command,
        ...(service !== null && { service }),
        ...(terminalId !== null && { terminal: terminalId }),
      })
    })
  }

  /** Removes the record; an event tells readers of `process.started` why. */
  neverRan({ id, sandboxId, status }: ProcessRecord, error: unknown): void {
    const reason = `It never ran: ${error instanceof Error ? error.message : error}`
    this.#db.transaction(() => {
      if (this.table.remove(id) && status === 'running')
        this.#events.add(sandboxId, 'process.lost', { id, reason })
    })
  }

  /** Resolves when the end is written. */
  ended(record: ProcessRecord): Promise<void> {
    const { id, sandboxId, reason } = record
    const { hint: _hint, ...result } = record.result ?? {}
    return this.#db.later(() => {
      // Its end was recorded before, or its sandbox is removed.
      if (!this.table.ended(id, record)) return
      if (!record.result) return this.#events.add(sandboxId, 'process.lost', { id, reason })
      if (record.result.oom) this.#events.add(sandboxId, 'oom', { processId: id })
      this.#events.add(sandboxId, 'process.exited', { id, ...result })
    })
  }
}

/** In the form it was given: text for a shell, or a program and its arguments. */
function shortened(command: string | string[]): string | string[] {
  if (typeof command === 'string') return shortText(command, MAX_COMMAND_LENGTH)
  const words: string[] = []
  let room = MAX_COMMAND_LENGTH
  for (const word of command) {
    if (room <= 0) return [...words, '…']
    words.push(shortText(word, room))
    room -= word.length + 1
  }
  return words
}

const shortText = (text: string, length: number) =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text
