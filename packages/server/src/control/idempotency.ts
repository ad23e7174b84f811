// The same Idempotency-Key with the same request makes one sandbox, also across restarts of the server.
import { hash } from 'node:crypto'
import { IsletError } from '@islet/contract'
import type { Db } from '../db/db.ts'
import { IdempotencyTable } from '../db/idempotency.ts'
import type { SandboxView } from './record.ts'

export class Idempotency {
  readonly #table: IdempotencyTable
  readonly #running = new Map<string, { fingerprint: string; result: Promise<SandboxView> }>()

  constructor(db: Db) {
    this.#table = new IdempotencyTable(db)
  }

  /** `make` calls `commit` in the transaction that acknowledges the sandbox: key and sandbox become durable together. */
  async once(
    key: string,
    input: unknown,
    make: (commit: (sandboxId: string) => void) => Promise<SandboxView>,
    find: (id: string) => SandboxView,
  ): Promise<SandboxView> {
    const fingerprint = hash('sha256', JSON.stringify(input))
    const running = this.#running.get(key)
    const known = running ?? this.#table.find(key)
    if (known && known.fingerprint !== fingerprint) throw new IsletError('idempotency_mismatch')
    if (running) return running.result
    if (known && 'sandboxId' in known) return find(known.sandboxId)
    const result = make((sandboxId) => this.#table.save(key, fingerprint, sandboxId))
    this.#running.set(key, { fingerprint, result })
    try {
      return await result
    } finally {
      this.#running.delete(key)
    }
  }
}
