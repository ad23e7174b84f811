// The states of a sandbox and the moves between them, as data. `move` is the one function that changes a status;
// fleet.ts writes what it answers, together with the event.
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
  /** Back to a checkpoint, from wherever something is left of it. */
  restore: { from: ['running', 'paused', 'hibernated', 'failed'], to: 'running', event: 'restored' },
  fail: { from: ALIVE, to: 'failed', event: 'failed' },
  stop: { from: [...ALIVE, 'failed'], to: 'stopped', event: 'stopped' },
} as const satisfies Record<string, Move>

export type Verb = keyof typeof MOVES

/** The reason of one that was paused because it filled the disk of the server. */
export const DISK_LOW = 'It was writing while the disk of the server was low. It goes on when there is room.'

const AFTER_FAILURE =
  'Its files are there: fork it, or save a checkpoint and restore it, and it runs again with them.'

const GONE = 'It is gone; another one can begin with one of its checkpoints.'

const STILL: readonly SandboxStatus[] = ['paused', 'hibernated']

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
    suspendedAt: STILL.includes(to) ? now : null,
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

/** For changes of a sandbox: of a stopped one only the record is left, and it stays as it was. */
export function assertNotStopped({ id, status, reason }: SandboxRecord): void {
  if (status !== 'stopped') return
  throw new IsletError('invalid_state', `Sandbox ${id} is stopped; it cannot be changed any more.`, {
    hint: reason ?? GONE,
    details: { status },
  })
}

/** One in the making is stopped by whoever makes it. */
export function assertMade({ id, status }: SandboxRecord): void {
  if (status !== 'creating') return
  throw new IsletError('invalid_state', `Sandbox ${id} is creating; it cannot be stopped yet.`, {
    hint: 'Wait until it is made.',
    details: { status, wanted: 'stopped' },
  })
}

export function isForDisk({ status, reason }: Pick<SandboxRecord, 'status' | 'reason'>): boolean {
  return status === 'paused' && reason === DISK_LOW
}

export function isStill({ status }: Pick<SandboxRecord, 'status'>): boolean {
  return STILL.includes(status)
}

function hintFor({ status, reason }: SandboxRecord, verb: Verb): string | undefined {
  if (status === MOVES[verb].to) return `It is ${status} already.`
  if (status === 'stopped') return reason ?? GONE
  if (status === 'failed') return AFTER_FAILURE
  if (verb === 'pause' && status === 'hibernated') return 'It stands still already.'
  if (verb === 'resume' && status === 'hibernated') return 'One that is hibernated goes on with wake.'
  if (verb === 'wake' && status === 'paused') return 'One that is paused goes on with resume.'
  if (verb === 'hibernate' && status === 'paused') return 'Resume it first.'
  return undefined
}
