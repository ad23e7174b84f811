// The states of a sandbox and the moves between them, as data. `move` is the one function that changes a status.
import { IsletError, type SandboxStatus } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'

interface Move {
  from: readonly SandboxStatus[]
  to: SandboxStatus
}

const ALIVE = ['creating', 'running', 'paused', 'hibernated'] as const

export const MOVES = {
  start: { from: ['creating'], to: 'running' },
  fail: { from: ALIVE, to: 'failed' },
  stop: { from: [...ALIVE, 'failed'], to: 'stopped' },
} as const satisfies Record<string, Move>

export type Verb = keyof typeof MOVES

/** The record after the move, with its times set. An illegal move is `invalid_state` and changes nothing. */
export function move(record: SandboxRecord, verb: Verb, reason: string | null = null): SandboxRecord {
  const { from, to }: Move = MOVES[verb]
  if (!from.includes(record.status)) {
    throw new IsletError(
      'invalid_state',
      `Sandbox ${record.id} is ${record.status}; ${verb} would make it ${to}.`,
      {
        details: { status: record.status, wanted: to },
      },
    )
  }
  const now = Date.now()
  return {
    ...record,
    status: to,
    reason,
    updatedAt: now,
    stoppedAt: to === 'stopped' ? now : record.stoppedAt,
  }
}

/** For calls that need a running sandbox. */
export function assertRunning(record: SandboxRecord): void {
  if (record.status === 'running') return
  throw new IsletError('invalid_state', `Sandbox ${record.id} is ${record.status}, not running.`, {
    hint: record.reason ?? undefined,
    details: { status: record.status, wanted: 'running' },
  })
}
