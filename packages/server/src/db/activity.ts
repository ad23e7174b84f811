import type { Db } from './db.ts'

/** When each sandbox was last used, as far as it was saved. */
export class ActivityTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  save(sandboxId: string, at: number): void {
    // Does nothing if the sandbox was removed.
    this.#db.run(
      `INSERT INTO activity (sandbox_id, at) SELECT id, ? FROM sandboxes WHERE id = ?
       ON CONFLICT (sandbox_id) DO UPDATE SET at = excluded.at`,
      at,
      sandboxId,
    )
  }

  get(sandboxId: string): number | undefined {
    return this.#db.value('SELECT at FROM activity WHERE sandbox_id = ?', sandboxId)
  }
}
