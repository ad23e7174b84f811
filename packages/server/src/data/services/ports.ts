// Which port a service gets, and on which one it really listens.
import { IsletError, type StartServiceParsed } from '@islet/contract'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { ListeningPort } from '../../guest/guest.ts'
import { hasEnded } from './moves.ts'
import type { ServiceKey, ServiceRecords } from './records.ts'

/** How many ports after the wanted one are tried. */
const SEARCH = 1000
const LAST = 65_535

type Wish = Pick<StartServiceParsed, 'port' | 'strictPort'>

/** Gives services ports that nothing listens on and that no other service of the sandbox was given. */
export class PortGiver {
  readonly #records: ServiceRecords
  readonly #sandboxes: Sandboxes

  constructor(records: ServiceRecords, sandboxes: Sandboxes) {
    this.#records = records
    this.#sandboxes = sandboxes
  }

  /** Before every start: its current port if that is free, else another one, which is recorded. */
  async assign(key: ServiceKey): Promise<number | null> {
    const open = await this.open(key, this.#records.get(key).spec)
    const { spec, state } = this.#records.get(key)
    if (state.assignedPort !== null && !this.#taken(key, open).has(state.assignedPort))
      return state.assignedPort
    const assignedPort = this.choose(key, spec, open)
    if (assignedPort !== state.assignedPort) this.#records.note(key, { assignedPort })
    return assignedPort
  }

  /** All ports that listen in the sandbox's network; empty when the service wants no port. */
  async open({ sandboxId }: ServiceKey, { port }: Wish): Promise<Set<number>> {
    if (port === undefined) return new Set()
    const { machine } = await this.#sandboxes.running(sandboxId)
    return new Set((await machine.guest.ports()).map((open) => open.port))
  }

  /** Record the answer before the next await, so that no other service gets the same port. */
  choose(key: ServiceKey, { port, strictPort = false }: Wish, open: ReadonlySet<number>): number | null {
    if (port === undefined) return null
    return choosePort(port, { taken: this.#taken(key, open), strict: strictPort })
  }

  /** Open ports, and ports that other services got but may not have opened yet. */
  #taken({ sandboxId, name }: ServiceKey, open: ReadonlySet<number>): Set<number> {
    const others = this.#records
      .list(sandboxId)
      .filter((other) => other.name !== name && !hasEnded(other.state))
    return new Set([...open, ...others.flatMap(({ state }) => state.assignedPort ?? [])])
  }
}

/** The wanted port, or the next one that is not taken. */
export function choosePort(wanted: number, options: { taken: ReadonlySet<number>; strict: boolean }): number {
  const { taken, strict } = options
  if (!taken.has(wanted)) return wanted
  const last = strict ? wanted : Math.min(wanted + SEARCH, LAST)
  for (let port = wanted + 1; port <= last; port++) if (!taken.has(port)) return port
  throw new IsletError(
    'port_taken',
    strict ? `Port ${wanted} is taken.` : `Ports ${wanted} to ${last} are taken.`,
  )
}

/** Of the ports of the session: the assigned one, else the lowest; of two addresses the one that can be dialed. */
export function ownPort(
  open: readonly ListeningPort[],
  session: number,
  assigned: number | null,
): ListeningPort | undefined {
  const rank = ({ port, address }: ListeningPort) => [
    port === assigned ? 0 : 1,
    port,
    dialable(address) ? 0 : 1,
  ]
  return open
    .filter((port) => port.session === session)
    .toSorted((a, b) => compare(rank(a), rank(b)))
    .at(0)
}

/** The loopback address that reaches a listener; undefined if none does. */
export function dialable(address: string): '127.0.0.1' | '::1' | undefined {
  if (address === '::1' || address === '::') return '::1'
  return /^(::ffff:)?(127\.0\.0\.1|0\.0\.0\.0)$/.test(address) ? '127.0.0.1' : undefined
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index])
  return at < 0 ? 0 : a[at]! - b[at]!
}
