// The ports that listen inside sandboxes, and watchers of their changes.
import { IsletError } from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { ListeningPort } from '../guest/guest.ts'
import type { Log } from '../log.ts'

/** A change is seen within this time, at the cost of one short request to the guest. */
const POLL_MS = 500

interface PortsOptions {
  sandboxes: Sandboxes
  log: Log
}

type OnChange = (ports: ListeningPort[]) => void

export class Ports {
  readonly #options: PortsOptions
  readonly #polls = new Map<string, Poll>()
  /** Without a network namespace a sandbox sees all ports of the machine; its own are those that its processes hold. */
  readonly #hasNetwork: boolean

  constructor(options: PortsOptions) {
    this.#options = options
    this.#hasNetwork = options.sandboxes.info().capabilities.network === true
    options.sandboxes.observe({
      began: ({ record }) => this.#polls.get(record.id)?.goOn(),
      suspended: (id) => this.#polls.get(id)?.rest(),
      gone: async (id) => this.#polls.get(id)?.end(),
    })
  }

  /** The ports that listen now, without those of Islet itself. */
  async list(sandboxId: string): Promise<ListeningPort[]> {
    const { machine } = await this.#options.sandboxes.running(sandboxId)
    // `ownPorts` is complete by then.
    await machine.envReady
    const ports = await machine.guest.ports()
    return ports
      .filter(({ port, pid }) => !machine.ownPorts.has(port) && (this.#hasNetwork || pid !== undefined))
      .sort((a, b) => a.port - b.port || (a.address < b.address ? -1 : 1))
  }

  /**
   * Calls with the ports that listen, then again after every change, until the returned function is called or the sandbox is
   * gone. While the guest is not connected or the sandbox is suspended there are no calls; changes are reported afterwards.
   */
  watch(sandboxId: string, onChange: OnChange): () => void {
    let poll = this.#polls.get(sandboxId)
    if (!poll) {
      poll = new Poll({
        list: () => this.list(sandboxId),
        isOver: () => this.#isGone(sandboxId),
        onEnd: () => this.#polls.delete(sandboxId),
        log: this.#options.log,
      })
      this.#polls.set(sandboxId, poll)
    }
    return poll.add(onChange)
  }

  #isGone(sandboxId: string): boolean {
    try {
      const { status } = this.#options.sandboxes.record(sandboxId)
      return status === 'stopped' || status === 'failed'
    } catch (error) {
      if (error instanceof IsletError) return true
      throw error
    }
  }
}

interface PollOptions {
  list(): Promise<ListeningPort[]>
  isOver(): boolean
  onEnd(): void
  log: Log
}

interface Watching {
  onChange: OnChange
  /** The first look that began after this watcher was added: older results are not reported to it. */
  firstLook: number
  isTold: boolean
}

/** The one poll of a sandbox, for all its watchers. */
class Poll {
  readonly #options: PollOptions
  readonly #watching = new Set<Watching>()
  #looks = 0
  #isLooking = false
  #isResting = false
  #seen: string | undefined
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(options: PollOptions) {
    this.#options = options
  }

  add(onChange: OnChange): () => void {
    const watching = { onChange, firstLook: this.#looks + 1, isTold: false }
    this.#watching.add(watching)
    if (!this.#isLooking && !this.#isResting) void this.#look()
    return () => {
      this.#watching.delete(watching)
      if (this.#watching.size === 0) this.end()
    }
  }

  /** The sandbox is suspended until `goOn`. */
  rest(): void {
    this.#isResting = true
    clearTimeout(this.#timer)
  }

  goOn(): void {
    this.#isResting = false
    if (!this.#isLooking && !this.#isOver) void this.#look()
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#watching.clear()
    clearTimeout(this.#timer)
    this.#options.onEnd()
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer)
    const look = ++this.#looks
    this.#isLooking = true
    try {
      const ports = await this.#options.list()
      if (!this.#isOver) this.#tell(ports, look)
    } catch (error) {
      if (!this.#isOver && this.#options.isOver()) this.end()
      if (!this.#isOver) this.#options.log.debug({ err: error }, 'ports not read')
    }
    this.#isLooking = false
    if (this.#isOver || this.#isResting) return
    const isWaited = [...this.#watching].some(({ firstLook }) => firstLook > look)
    this.#timer = setTimeout(() => void this.#look(), isWaited ? 0 : POLL_MS).unref()
  }

  #tell(ports: ListeningPort[], look: number): void {
    const text = JSON.stringify(ports)
    const isChanged = text !== this.#seen
    this.#seen = text
    for (const watching of [...this.#watching]) {
      if (!this.#watching.has(watching) || watching.firstLook > look) continue
      if (watching.isTold && !isChanged) continue
      watching.isTold = true
      try {
        watching.onChange(ports)
      } catch (error) {
        this.#options.log.error({ err: error }, 'a watcher of ports failed')
      }
    }
  }
}
