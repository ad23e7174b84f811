// The real store on a real database in a directory, with one sandbox, without a server.

import type { RunningSandbox, SandboxObserver } from '../../control/fleet.ts'
import { move } from '../../control/lifecycle.ts'
import { newRecord } from '../../control/record.ts'
import { type Db, openDb } from '../../db/db.ts'
import { type SandboxRecord, SandboxTable } from '../../db/sandboxes.ts'
import { Store, type StoreOptions } from '../store.ts'

export interface OpenStore extends AsyncDisposable {
  db: Db
  store: Store
  sandboxId: string
  /** Changes the record of the sandbox. */
  save(change: Partial<SandboxRecord>): void
  /** As when the sandbox is restored from a checkpoint; `give` writes its rows. */
  restore(give: () => void): Promise<void>
  /** As when the sandbox is deleted. */
  remove(): Promise<void>
}

/** Uses the sandbox in the directory's database; creates it the first time. */
export function openStore(directory: string, limits?: StoreOptions['limits']): OpenStore {
  const db = openDb(directory)
  const table = new SandboxTable(db)
  const [found] = table.holding()
  const record =
    found ??
    move(newRecord({}, { runtime: 'host', capabilities: { engine: 'process', isolation: 'none' } }), 'start')
  if (!found) table.save(record)
  const observers: SandboxObserver[] = []
  const sandboxes = {
    record: (id: string) => table.get(id)!,
    observe: (observer: SandboxObserver) => void observers.push(observer),
  }
  const store = new Store({ db, sandboxes, log: console, limits })
  const save = (change: Partial<SandboxRecord>) => table.save({ ...table.get(record.id)!, ...change })
  return {
    db,
    store,
    sandboxId: record.id,
    save,
    async restore(give) {
      for (const observer of observers) await observer.suspended?.(record.id, { kept: false })
      give()
      const sandbox = { record: table.get(record.id)! } as RunningSandbox
      for (const observer of observers) await observer.began(sandbox, 'restarted')
    },
    async remove() {
      save({ status: 'stopped', stoppedAt: Date.now() })
      for (const observer of observers) await observer.gone(record.id, { removed: true })
    },
    async [Symbol.asyncDispose]() {
      await store.close()
      db[Symbol.dispose]()
    },
  }
}
