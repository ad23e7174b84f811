// A process that opens the store as the server does, tells what is in it, and then writes until it is killed.
//
//   stdin: {"directory": ..., "next": [n, ...]}     stdout: the store as JSON, then "CLIENT N" for each step that is done
//
// It may be started ahead: it waits for its line. It ends with its parent.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import type { StoreOperation, StoreOperationParsed } from '@islet/contract'
import { type OpenStore, openStore } from '../../packages/server/src/data/testing/store.ts'
import { type State, step } from './store-model.ts'

const STDOUT = 1

createInterface(process.stdin)
  .once('line', (line) => {
    const { directory, next } = JSON.parse(line) as { directory: string; next: number[] }
    const opened = openStore(directory)
    writeSync(STDOUT, `${JSON.stringify(stateOf(opened))}\n`)
    for (const [client, n] of next.entries()) void write(opened, client, n)
  })
  .once('close', () => process.exit())

async function write({ store, sandboxId }: OpenStore, client: number, from: number): Promise<void> {
  for (let n = from; ; n++) {
    const operations = step(client, n).map(parsed)
    const [first] = operations
    if (operations.length > 1) store.batch(sandboxId, operations)
    else if (first!.op === 'set') store.set(sandboxId, first!.key, first!)
    else store.delete(sandboxId, first!.key)
    writeSync(STDOUT, `${client} ${n}\n`)
    await setImmediate()
  }
}

/** As the schema would, without loading it: the less there is to start, the more often it can be killed. */
const parsed = (operation: StoreOperation): StoreOperationParsed =>
  operation.op === 'set' ? { ...operation, value: JSON.stringify(operation.value) } : operation

function stateOf({ store, sandboxId }: OpenStore): State {
  const { keys } = store.list(sandboxId, { limit: 1000 })
  return Object.fromEntries(keys.map((key) => [key, store.get(sandboxId, key).json]))
}
