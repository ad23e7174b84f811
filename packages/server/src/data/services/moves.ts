// The statuses of a service, the moves between them, and the fields that entering a status resets.
//
//     stopped, failed ──install──> installing ──start──> starting ──run──> running <──ready, unready──> ready
//                                                           ^───────restart───────'───────────────────────'
import { IsletError, type ServiceInfo } from '@islet/contract'
import type { ServiceState } from '../../db/services.ts'

export type ServiceStatus = ServiceInfo['status']

interface Move {
  from: readonly ServiceStatus[]
  to: ServiceStatus
}

const ALIVE = ['installing', 'starting', 'running', 'ready'] as const
const ENDED = ['stopped', 'failed'] as const

export const MOVES = {
  install: { from: [...ENDED, ...ALIVE], to: 'installing' },
  start: { from: [...ENDED, ...ALIVE], to: 'starting' },
  run: { from: ['starting'], to: 'running' },
  ready: { from: ['running'], to: 'ready' },
  unready: { from: ['ready'], to: 'running' },
  restart: { from: ['starting', 'running', 'ready'], to: 'starting' },
  fail: { from: ALIVE, to: 'failed' },
  stop: { from: [...ENDED, ...ALIVE], to: 'stopped' },
} as const satisfies Record<string, Move>

export type Verb = keyof typeof MOVES

const NO_PROCESS = { pid: null, port: null, url: null, healthy: null, healthStatus: null } as const
const ENTERED: Record<ServiceStatus, () => Partial<ServiceState>> = {
  installing: () => ({ ...NO_PROCESS, reason: null, installId: null, attemptAt: Date.now() }),
  starting: () => ({ ...NO_PROCESS, reason: null, installed: true, attemptAt: Date.now() }),
  running: () => ({}),
  ready: () => ({}),
  failed: () => ({ ...NO_PROCESS, assignedPort: null }),
  stopped: () => ({ ...NO_PROCESS, assignedPort: null, reason: null }),
}

/** The state after the move. An illegal move is a bug of this server. */
export function move(state: ServiceState, verb: Verb, patch: Partial<ServiceState> = {}): ServiceState {
  const { from, to }: Move = MOVES[verb]
  if (!from.includes(state.status))
    throw new IsletError('internal', `A service that is ${state.status} cannot ${verb}.`)
  return { ...state, ...ENTERED[to](), ...patch, status: to }
}

export function hasEnded({ status }: Pick<ServiceState, 'status'>): boolean {
  return status === 'stopped' || status === 'failed'
}

/** `ready` includes `running`. */
export function isAtLeast(status: ServiceStatus, wanted: ServiceStatus): boolean {
  return status === wanted || (wanted === 'running' && status === 'ready')
}

/** The state before the first move. */
export function newState(path: string, options: { installed: boolean }): ServiceState {
  return {
    status: 'stopped',
    goal: 'up',
    path,
    installed: options.installed,
    installId: null,
    processId: null,
    assignedPort: null,
    reason: null,
    restartCount: 0,
    attemptAt: 0,
    notBefore: 0,
    ...NO_PROCESS,
  }
}

/** The first move: install, unless that was done. */
export function begin(state: ServiceState, patch: Partial<ServiceState> = {}): ServiceState {
  return move(state, state.installed ? 'start' : 'install', {
    goal: 'up',
    restartCount: 0,
    notBefore: 0,
    assignedPort: null,
    ...patch,
  })
}
