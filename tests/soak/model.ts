// The knowledge of a client about a sandbox. A call that was cut off was carried out or not: then there are several states that the sandbox may
// be in, until a look says which.
import { createHash } from 'node:crypto'
import type { Clock, Expiring } from './clock.ts'
import type { Follower } from './follower.ts'

export interface State {
  /** Path → hash of the content. */
  files: Record<string, string>
  store: Record<string, Stored>
  env: string
  /** The seconds for which the service of this sandbox sleeps; undefined: it has no service. */
  service: string | undefined
}

export interface Stored extends Expiring {
  value: string
}

/** The result of a look. */
export interface Found extends Omit<State, 'store'> {
  store: Record<string, string>
}

export interface Job {
  id: string
  /** The number of lines that it prints; see `printedBy`. */
  tag: string
  lines: number
  startedAt: number
  exitCode: number
  /** `Known.losses` when it was started: as long as that is so, it must not be lost. */
  losses: number
  /** Its start was never acknowledged. */
  mayBeLost: boolean
}

export interface Known {
  id: string
  states: State[]
  jobs: Job[]
  /** Ids of events, as they were read last. */
  events: string[]
  follower: Follower | undefined
  /** Events that must be there, once: `type id`. */
  expected: Set<string>
  /** How often what runs in it may have ended: its first process was killed, or it was taken back. */
  losses: number
  /** When its first process was killed; undefined once it is known to run again. */
  wound: number | undefined
  healing: Promise<void> | undefined
  heals: number
}

export interface Saved {
  id: string
  states: State[]
}

export interface SavedOf extends Saved {
  sandboxId: string
}

export function newKnown(id: string, states: State[]): Known {
  return {
    id,
    states,
    jobs: [],
    events: [],
    follower: undefined,
    expected: new Set(),
    losses: 0,
    wound: undefined,
    healing: undefined,
    heals: 0,
  }
}

export function apply(sandbox: Known, change: (state: State) => State): void {
  sandbox.states = sandbox.states.map(change)
}

/** Looked at since `from`. */
export function fits(state: State, found: Found, clock: Clock, from: number): boolean {
  const isSame = JSON.stringify(withoutStore(state)) === JSON.stringify(withoutStore(found))
  return isSame && storeFits(state.store, found.store, clock, from)
}

function storeFits(expected: State['store'], found: Found['store'], clock: Clock, from: number): boolean {
  const known = Object.entries(expected).every(([key, stored]) => {
    const fate = clock.fate(stored, from)
    if (!(key in found)) return fate !== 'there'
    return fate !== 'gone' && found[key] === stored.value
  })
  return known && Object.keys(found).every((key) => key in expected)
}

function withoutStore({ files, env, service }: Omit<State, 'store'>) {
  return { files: sorted(files), env, service }
}

export function without<T>(from: Record<string, T>, isOut: (key: string) => boolean): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([key]) => !isOut(key)))
}

const sorted = <T>(record: Record<string, T>) =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

export const hash = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')
