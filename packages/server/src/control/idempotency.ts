// The same Idempotency-Key with the same request makes one sandbox, also across restarts of the server.
import { hash } from 'node:crypto'
import { IsletError } from '@islet/contract'
import type { Db } from '../db/db.ts'
import { IdempotencyTable } from '../db/idempotency.ts'
import type { SandboxView } from './record.ts'

interface Running {
  fingerprint: string
  result: Promise<SandboxView>
  signal: AbortSignal | undefined
}

export class Idempotency {
  readonly #table: IdempotencyTable
  readonly #running = new Map<string, Running>()

  constructor(db: Db) {
    this.#table = new IdempotencyTable(db)
  }

  /** `make` calls `commit` in the transaction that acknowledges the sandbox: key and sandbox become durable together. */
  async once(
    key: string,
    input: unknown,
    make: (commit: (sandboxId: string) => void) => Promise<SandboxView>,
    find: (id: string) => SandboxView,
    signal?: AbortSignal,
  ): Promise<SandboxView> {
    const fingerprint = hash('sha256', JSON.stringify(input))
    const running = this.#running.get(key)
    const known = running ?? this.#table.find(key)
    if (known && known.fingerprint !== fingerprint) throw new IsletError('idempotency_mismatch')
    if (running) {
      const result = await running.result.catch((error) => {
        if (!running.signal?.aborted) throw error
      })
      // The first caller went away before its sandbox was begun: this one takes over.
      return result ?? this.once(key, input, make, find, signal)
    }
    if (known && 'sandboxId' in known) return find(known.sandboxId)
    const result = make((sandboxId) => this.#table.save(key, fingerprint, sandboxId))
    this.#running.set(key, { fingerprint, result, signal })
    try {
      return await result
    } finally {
      this.#running.delete(key)
    }
  }
}
