// The store over HTTP, one caller: reading one value, writing one, and a batch of 100 writes.
import type { Figure } from '../figure.ts'
import { sample, summarise } from '../measure.ts'

const BATCH = 100

export const storeFigure: Figure = async ({ create, quick }) => {
  const sandbox = await create()
  const { store } = sandbox
  const n = quick ? 200 : 2000
  const value = { step: 3, total: 10, score: 0.91 }
  const key = (index: number) => `key_${Math.abs(index) % 1000}`
  const set = await sample(n, 200, async (index) => void (await store.set(key(index), { value })))
  await store.set('read', { value })
  const get = await sample(n, 200, async () => void (await store.get('read')))
  const operations = Array.from(
    { length: BATCH },
    (_, index) => ({ op: 'set', key: key(index), value }) as const,
  )
  const batch = await sample(n / 10, 20, async () => void (await store.batch(operations)))
  await sandbox.kill()
  return [
    { figure: 'store get', islet: summarise(get), unit: 'ms' },
    { figure: 'store set', islet: summarise(set), unit: 'ms' },
    { figure: `store batch of ${BATCH} sets`, islet: summarise(batch), unit: 'ms' },
  ]
}
