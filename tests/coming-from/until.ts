import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for what is about to happen; the test's own limit ends it. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50)
}
