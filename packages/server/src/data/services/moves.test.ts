import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SERVICE_STATUSES } from '@islet/contract'
import { begin, hasEnded, MOVES, move, newState, type Verb } from './moves.ts'

const fresh = newState('/srv', { installed: true })
const busy = {
  ...fresh,
  pid: 7,
  port: 80,
  assignedPort: 80,
  url: 'u',
  healthy: true,
  healthStatus: 'HTTP 200',
}

test('every move is possible only from its statuses and leads to its target', () => {
  for (const verb of Object.keys(MOVES) as Verb[]) {
    const { from, to } = MOVES[verb]
    for (const status of SERVICE_STATUSES) {
      const moved = () => move({ ...busy, status }, verb)
      if ((from as readonly string[]).includes(status)) assert.equal(moved().status, to)
      else assert.throws(moved, { code: 'internal' }, `${verb} of ${status}`)
    }
  }
})

test('every status can be reached, and every one can be stopped', () => {
  const reached = new Set(Object.values(MOVES).map(({ to }) => to as string))
  assert.deepEqual([...reached].toSorted(), SERVICE_STATUSES.toSorted())
  for (const status of SERVICE_STATUSES) assert.equal(move({ ...fresh, status }, 'stop').status, 'stopped')
})

test('the fields of a process are reset when it ends', () => {
  const gone = { pid: null, port: null, url: null, healthy: null, healthStatus: null }
  for (const verb of ['install', 'start', 'fail', 'stop'] as const) {
    const { pid, port, url, healthy, healthStatus } = move({ ...busy, status: 'starting' }, verb)
    assert.deepEqual({ pid, port, url, healthy, healthStatus }, gone)
  }
})

test('a restart keeps the port, an end gives it back', () => {
  assert.equal(move({ ...busy, status: 'ready' }, 'restart').assignedPort, 80)
  assert.equal(move({ ...busy, status: 'ready' }, 'fail').assignedPort, null)
  assert.equal(move({ ...busy, status: 'ready' }, 'stop').assignedPort, null)
})

test('a service begins with its install until that was done', () => {
  assert.equal(begin(newState('/srv', { installed: false })).status, 'installing')
  assert.equal(begin(fresh).status, 'starting')
  const installed = move(begin(newState('/srv', { installed: false })), 'start')
  const again = begin({ ...installed, goal: 'again', restartCount: 3, notBefore: 9 })
  assert.deepEqual([again.status, again.goal, again.restartCount, again.notBefore], ['starting', 'up', 0, 0])
})

test('stopped and failed are ends, the others are not', () => {
  assert.deepEqual(
    SERVICE_STATUSES.filter((status) => hasEnded({ status })),
    ['failed', 'stopped'],
  )
})
