import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IsletError, SANDBOX_STATUSES } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import { assertRunning, MOVES, move, type Verb } from './lifecycle.ts'

const ALLOWED: Record<Verb, readonly string[]> = {
  start: ['creating'],
  pause: ['running'],
  resume: ['paused'],
  hibernate: ['running'],
  wake: ['hibernated'],
  restore: ['running', 'paused', 'hibernated', 'failed'],
  fail: ['creating', 'running', 'paused', 'hibernated'],
  stop: ['creating', 'running', 'paused', 'hibernated', 'failed'],
}

test('every pair of state and verb moves or is refused as the table says', () => {
  for (const status of SANDBOX_STATUSES) {
    for (const verb of Object.keys(MOVES) as Verb[]) {
      const record = { id: 'sbx-1', status, updatedAt: 0, stoppedAt: null } as SandboxRecord
      if (ALLOWED[verb].includes(status)) {
        const moved = move(record, verb, 'because')
        assert.equal(moved.status, MOVES[verb].to, `${status} ${verb}`)
        assert.equal(moved.reason, 'because')
        assert.equal(moved.stoppedAt !== null, verb === 'stop')
        assert.equal(moved.suspendedAt !== null, verb === 'pause' || verb === 'hibernate')
        assert.ok(moved.updatedAt > 0)
      } else {
        assert.throws(
          () => move(record, verb),
          (error: IsletError) => error.code === 'invalid_state' && error.message.includes(status),
          `${status} ${verb}`,
        )
      }
    }
  }
})

test('a refused move has a hint that says what to do instead', () => {
  const hintOf = (status: string, verb: Verb, reason: string | null = null): string | undefined => {
    try {
      move({ id: 'sbx-1', status, reason } as SandboxRecord, verb)
    } catch (error) {
      return (error as IsletError).hint
    }
    return assert.fail(`${status} ${verb}`)
  }
  assert.match(hintOf('paused', 'pause')!, /paused already/)
  assert.match(hintOf('running', 'wake')!, /running already/)
  assert.match(hintOf('hibernated', 'resume')!, /wake/)
  assert.match(hintOf('paused', 'wake')!, /resume/)
  assert.match(hintOf('failed', 'wake')!, /[Rr]estore/)
  assert.match(hintOf('hibernated', 'pause')!, /suspended already/)
  assert.match(hintOf('stopped', 'restore')!, /checkpoints/)
  assert.equal(hintOf('stopped', 'pause', 'It was idle for 1 s.'), 'It was idle for 1 s.')
})

test('only a running sandbox counts as running', () => {
  for (const status of SANDBOX_STATUSES) {
    const record = { id: 'sbx-1', status, reason: null } as SandboxRecord
    if (status === 'running') assertRunning(record)
    else assert.throws(() => assertRunning(record), IsletError)
  }
})
