// All stores together are full.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, type TestApi } from '../support/server.ts'
import { StoreCalls } from '../support/store.ts'

let api: TestApi
before(async () => {
  api = await startTestApi({ storeTotalBytes: '4Mi' })
})
after(() => api[Symbol.asyncDispose]())

const codeOf = ({ body }: { body: Record<string, unknown> }) => (body.error as { code?: string })?.code

test('the stores of all sandboxes and checkpoints share one limit; deleting makes room, and sandboxes keep running', async () => {
  const ids = await Promise.all([1, 2].map(async () => (await api.createSandbox()).id))
  const [first, second] = ids.map((id) => new StoreCalls(api, id))
  const value = 'x'.repeat(500_000)
  const checkpoints = `/v1/sandboxes/${ids[0]}/checkpoints`
  let made: string | undefined
  for (let n = 0; (await first!.set('same', { value: value + n })).status === 200; n++) {
    assert.ok(n < 100, 'a checkpoint keeps the value that it was made with')
    const answer = await api.call('POST', checkpoints, { name: `c${n}` })
    if (answer.status === 201) made ??= ((await answer.json()) as { id: string }).id
  }
  assert.equal(codeOf(await first!.set('same', { value })), 'limit_exceeded')
  assert.equal(codeOf(await second!.set('other', { value: 1 })), 'limit_exceeded')
  assert.equal(codeOf(await second!.batch([{ op: 'set', key: 'k', value: 1 }])), 'limit_exceeded')
  assert.equal((await api.call('POST', checkpoints, { name: 'more' })).status, 429)
  assert.equal((await api.call('POST', `/v1/sandboxes/${ids[1]}/checkpoints`, { name: 'none' })).status, 201)
  assert.equal((await first!.get('same')).status, 200)
  assert.equal((await api.call('POST', `/v1/sandboxes/${ids[1]}/exec`, { command: 'true' })).status, 200)
  await api.createSandbox()
  await api.call('DELETE', `${checkpoints}/${made}`)
  assert.equal((await second!.set('other', { value: 1 })).status, 200)
})
