// The store over HTTP, one caller: reading one value, writing one, and a batch of 100 writes.
import type { Figure } from '../figure.ts'
import { sample } from '../measure.ts'
import { BenchServer } from '../server.ts'

const BATCH = 100

export const storeFigure: Figure = {
  method:
    'A value of 40 bytes read 2,000 times, written 2,000 times to 1,000 keys, and 200 batches of 100 writes, one caller by the SDK. A ' +
    'write is committed when it is answered. Floor: a request to a Node server of ten lines that answers five bytes, on one kept connection.',

  async measure({ floor, quick }) {
    await using server = await BenchServer.start()
    const { store } = await server.create()
    await server.filled()
    const n = quick ? 200 : 2000
    const value = { step: 3, total: 10, score: 0.91 }
    const key = (index: number) => `key_${Math.abs(index) % 1000}`
    const set = await sample('store set', n, 200, (index) => store.set(key(index), { value }))
    await store.set('read', { value })
    const get = await sample('store get', n, 200, () => store.get('read'))
    const operations = Array.from(
      { length: BATCH },
      (_, index) => ({ op: 'set', key: key(index), value }) as const,
    )
    const batch = await sample('store batch', n / 10, 20, () => store.batch(operations))
    const bare = await floor.request(n)
    const note = 'bare HTTP request'
    return [
      { id: 'store-get', figure: 'store get', unit: 'ms', islet: get.summary(), floor: bare, note },
      { id: 'store-set', figure: 'store set', unit: 'ms', islet: set.summary(), floor: bare, note },
      {
        id: 'store-batch',
        figure: `store batch of ${BATCH} sets`,
        unit: 'ms',
        islet: batch.summary(),
        floor: bare,
        note,
      },
    ]
  },
}
