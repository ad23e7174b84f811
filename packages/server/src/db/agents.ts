import type { Db } from './db.ts'

/** Says which processes are agent sessions. A row goes with its process. */
export class AgentTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  insert(processId: string): void {
    this.#db.run('INSERT INTO agents (process_id) VALUES (?)', processId)
  }

  has(processId: string): boolean {
    return this.#db.value('SELECT 1 FROM agents WHERE process_id = ?', processId) !== undefined
  }

  /** Newest first. */
  ids(sandboxId: string, limit: number): string[] {
    return this.#db.column(
      `SELECT id FROM processes JOIN agents ON process_id = id WHERE sandbox_id = ?
       ORDER BY started_at DESC, id DESC LIMIT ?`,
      sandboxId,
      limit,
    )
  }
}
