import { setTimeout as sleep } from 'node:timers/promises'

const LIMIT_MS = 120_000

/** Waits until the condition holds. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + LIMIT_MS
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`It is not so after ${LIMIT_MS} ms: ${isSo}`)
    await sleep(50)
  }
}
