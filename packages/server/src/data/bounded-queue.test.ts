import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BoundedQueue, Budget } from './bounded-queue.ts'

const queueOf = (shared: Budget) =>
  new BoundedQueue<string>({
    maxMessages: 100,
    maxBytes: 100,
    sizeOf: ({ length }) => length,
    overflow: '!',
    shared,
  })

test('queues that share a budget never hold more than the budget together', async () => {
  const budget = new Budget(15)
  const [one, other] = [queueOf(budget), queueOf(budget)]
  one.push('x'.repeat(10))
  other.push('y'.repeat(10))
  other.end()
  const seen: string[] = []
  for await (const message of other) seen.push(message)
  assert.deepEqual(seen, ['!'])
  assert.equal(budget.left, 5)
})

test('messages that are read, lost or left behind are given back to the budget', async () => {
  const budget = new Budget(15)
  const queue = queueOf(budget)
  for (const text of ['abc', 'defg', 'x'.repeat(20), 'hi']) queue.push(text)
  assert.equal(budget.left, 12)
  for await (const message of queue) if (message === 'hi') break
  assert.equal(budget.left, 13)
  queue.close()
  queue.close()
  assert.equal(budget.left, 15)
})
