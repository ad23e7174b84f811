// Gives services ports that nothing listens on and no other service of the sandbox was given.
import type { StartServiceParsed } from '@islet/contract'
import type { Sandboxes } from '../../control/sandboxes.ts'
import { hasEnded } from './moves.ts'
import { choosePort } from './ports.ts'
import type { ServiceKey, ServiceRecords } from './records.ts'

type Wish = Pick<StartServiceParsed, 'port' | 'strictPort'>

export class PortGiver {
  readonly #records: ServiceRecords
  readonly #sandboxes: Sandboxes

  constructor(records: ServiceRecords, sandboxes: Sandboxes) {
    this.#records = records
    this.#sandboxes = sandboxes
  }

  /** Before every start: the port it has if that is still free, else another one, written down. */
  async assign(key: ServiceKey): Promise<number | null> {
    const open = await this.open(key, this.#records.get(key).spec)
    const { spec, state } = this.#records.get(key)
    if (state.assignedPort !== null && !this.#taken(key, open).has(state.assignedPort))
      return state.assignedPort
    const assignedPort = this.choose(key, spec, open)
    if (assignedPort !== state.assignedPort) this.#records.note(key, { assignedPort })
    return assignedPort
  }

  /** All that listens where the sandbox does, whosever it is; nothing when no port is wished for. */
  async open({ sandboxId }: ServiceKey, { port }: Wish): Promise<Set<number>> {
    if (port === undefined) return new Set()
    const { machine } = await this.#sandboxes.running(sandboxId)
    return new Set((await machine.guest.ports()).map((open) => open.port))
  }

  /** Write the answer down before anything is waited for, so that nobody else is given it. */
  choose(key: ServiceKey, { port, strictPort = false }: Wish, open: ReadonlySet<number>): number | null {
    if (port === undefined) return null
    return choosePort(port, { taken: this.#taken(key, open), strict: strictPort })
  }

  /** The open ones, and those that others were given and may not have opened yet. */
  #taken({ sandboxId, name }: ServiceKey, open: ReadonlySet<number>): Set<number> {
    const others = this.#records
      .list(sandboxId)
      .filter((other) => other.name !== name && !hasEnded(other.state))
    return new Set([...open, ...others.flatMap(({ state }) => state.assignedPort ?? [])])
  }
}
