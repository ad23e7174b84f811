// The states of a sandbox and the moves between them, as data. Only `move` changes a status; fleet.ts writes the moved record
// together with its event.
import { type EventType, IsletError, type SandboxStatus } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'

interface Move {
  from: readonly SandboxStatus[]
  to: SandboxStatus
  event: EventType
}

const ALIVE = ['creating', 'running', 'paused', 'hibernated'] as const

export const MOVES = {
  start: { from: ['creating'], to: 'running', event: 'started' },
  pause: { from: ['running'], to: 'paused', event: 'paused' },
  resume: { from: ['paused'], to: 'running', event: 'resumed' },
  hibernate: { from: ['running'], to: 'hibernated', event: 'hibernated' },
  wake: { from: ['hibernated'], to: 'running', event: 'woken' },
  /** Back to a checkpoint. */
  restore: { from: ['running', 'paused', 'hibernated', 'failed'], to: 'running', event: 'restored' },
  fail: { from: ALIVE, to: 'failed', event: 'failed' },
  stop: { from: [...ALIVE, 'failed'], to: 'stopped', event: 'stopped' },
} as const satisfies Record<string, Move>

export type Verb = keyof typeof MOVES

/** The reason of a sandbox that was paused because it filled the disk. Records hold this text: it must not change. */
export const DISK_LOW = 'It was writing while the disk of the server was low. It goes on when there is room.'

const AFTER_FAILURE = 'Its files are kept: fork it, or save a checkpoint and restore that.'

const GONE = 'A new sandbox can be created from one of its checkpoints.'

const SUSPENDED: readonly SandboxStatus[] = ['paused', 'hibernated']

/** The record after the move, with its times set. An illegal move is `invalid_state` and changes nothing. */
export function move(record: SandboxRecord, verb: Verb, reason: string | null = null): SandboxRecord {
  const { to }: Move = MOVES[verb]
  assertMove(record, verb)
  const now = Date.now()
  return {
    ...record,
    status: to,
    reason,
    updatedAt: now,
    suspendedAt: SUSPENDED.includes(to) ? now : null,
    stoppedAt: to === 'stopped' ? now : record.stoppedAt,
  }
}

export function assertMove(record: SandboxRecord, verb: Verb): void {
  const { from, to }: Move = MOVES[verb]
  if (from.includes(record.status)) return
  throw new IsletError(
    'invalid_state',
    `Sandbox ${record.id} is ${record.status}; ${verb} would make it ${to}.`,
    { hint: hintFor(record, verb), details: { status: record.status, wanted: to } },
  )
}

/** For calls that need a running sandbox. */
export function assertRunning(record: SandboxRecord): void {
  if (record.status === 'running') return
  throw new IsletError('invalid_state', `Sandbox ${record.id} is ${record.status}, not running.`, {
    hint: record.status === 'failed' ? `${record.reason} ${AFTER_FAILURE}` : (record.reason ?? undefined),
    details: { status: record.status, wanted: 'running' },
  })
}

/** For changes of a sandbox. Only the record of a stopped one is left, and it does not change. */
export function assertNotStopped({ id, status, reason }: SandboxRecord): void {
  if (status !== 'stopped') return
  throw new IsletError('invalid_state', `Sandbox ${id} is stopped; it cannot be changed any more.`, {
    hint: reason ?? GONE,
    details: { status },
  })
}

/** A sandbox that is being created can only be stopped by its create. */
export function assertMade({ id, status }: SandboxRecord): void {
  if (status !== 'creating') return
  throw new IsletError('invalid_state', `Sandbox ${id} is creating; it cannot be stopped yet.`, {
    hint: 'Wait until it runs.',
    details: { status, wanted: 'stopped' },
  })
}

export function isPausedForDisk({ status, reason }: Pick<SandboxRecord, 'status' | 'reason'>): boolean {
  return status === 'paused' && reason === DISK_LOW
}

export function isSuspended({ status }: Pick<SandboxRecord, 'status'>): boolean {
  return SUSPENDED.includes(status)
}

function hintFor({ status, reason }: SandboxRecord, verb: Verb): string | undefined {
  if (status === MOVES[verb].to) return `It is ${status} already.`
  if (status === 'stopped') return reason ?? GONE
  if (status === 'failed') return AFTER_FAILURE
  if (verb === 'pause' && status === 'hibernated') return 'It is suspended already.'
  if (verb === 'resume' && status === 'hibernated') return 'Use wake for a hibernated sandbox.'
  if (verb === 'wake' && status === 'paused') return 'Use resume for a paused sandbox.'
  if (verb === 'hibernate' && status === 'paused') return 'Resume it first.'
  return undefined
}
