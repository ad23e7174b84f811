// The way from inside a sandbox to this server: a unix socket in its link directory, which programs inside find at
// /.islet/inside.sock. The socket itself says which sandbox is calling; only routes that take their sandbox from the
// caller are served there (middleware/inside.ts). With `storeAccess` a port on the sandbox's loopback leads there too.
//
// Whoever calls is hostile: connections, requests and large bodies at once, their rate, and the time each may take are
// bounded per sandbox, and what is over a bound waits or is cut off without costing this server anything.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { IsletError } from '@islet/contract'
import type { Beginning, RunningSandbox } from '../../control/fleet.ts'
import type { Machine } from '../../control/machine.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Cell } from '../../engine/engine.ts'
import type { Log } from '../../log.ts'
import type { Tokens } from '../../tokens.ts'
import type { Api } from '../api.ts'
import { expectContinue } from '../http/body.ts'
import { endWithError } from '../sockets/upgrade.ts'
import { Door } from './door.ts'

const SOCKET_NAME = 'inside.sock'
/** A key of the store, percent-encoded, and a token fit well. */
const MAX_HEADER_BYTES = 8 * 1024
/** For what is being answered when a sandbox is about to stand still. */
const LEAVE_MS = 1000

interface InsideSocketsOptions {
  api: Pick<Api, 'listener'>
  sandboxes: Sandboxes
  tokens: Tokens
  log: Log
}

export class InsideSockets {
  readonly #options: InsideSocketsOptions
  /** Never listens: doors hand it their connections. */
  readonly #server: Server
  readonly #doors = new Map<string, Door>()
  /** Of cells that wait for a sandbox, by the cells' ids. */
  readonly #ahead = new Map<string, Door>()

  constructor(options: InsideSocketsOptions) {
    this.#options = options
    this.#server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false, noDelay: true })
    this.#server.on('request', (incoming, outgoing) => this.#serve(incoming, outgoing))
    this.#server.on('checkContinue', (incoming, outgoing) => {
      expectContinue(incoming)
      this.#serve(incoming, outgoing)
    })
    this.#server.on('clientError', (_, socket) => {
      endWithError(
        socket,
        new IsletError('bad_request', 'The request is not valid HTTP, or its head is too large.'),
      )
    })
    options.sandboxes.observe({
      began: (sandbox, how) => this.#began(sandbox, how),
      suspended: (id, { kept }) => this.#suspended(id, { kept }),
      disconnect: (id) => this.#disconnect(id),
      gone: async (id) => this.#close(id),
      waits: (cell) => this.#openAhead(cell),
      ends: async ({ id }) => this.#takeAhead(id)?.close(),
    })
  }

  async close(): Promise<void> {
    await Promise.all([...this.#doors.values(), ...this.#ahead.values()].map((door) => door.close()))
    this.#doors.clear()
    this.#ahead.clear()
  }

  /**
   * A sandbox that is frozen as it is finds its connections as they were. One whose memory goes to disk goes on elsewhere, and
   * no connection can go with it.
   */
  async #suspended(id: string, { kept }: { kept: boolean }): Promise<void> {
    const door = this.#doors.get(id)
    const staysHere = kept && this.#options.sandboxes.info().capabilities.memoryCheckpoint !== true
    if (staysHere) return door?.standStill()
    this.#doors.delete(id)
    await door?.leave(kept ? LEAVE_MS : 0)
  }

  async #disconnect(id: string): Promise<() => void> {
    const door = this.#doors.get(id)
    if (!door) return () => {}
    await door.leave(LEAVE_MS)
    return () => {
      // Meanwhile it may have gone, or have been given another.
      if (this.#doors.get(id) !== door) return
      const again = door.again()
      this.#doors.set(id, again)
      again.open().catch((error) => {
        this.#options.log.error({ err: error, sandbox: id }, 'a sandbox cannot reach this server')
      })
    }
  }

  #began({ record, machine }: RunningSandbox, how: Beginning): void | Promise<void> {
    const { log } = this.#options
    const known = how === 'resumed' ? this.#doors.get(record.id) : undefined
    if (known) return known.goOn()
    const ahead = this.#takeAhead(machine.cell.id)
    const door = (ahead ?? this.#newDoor(machine.cell)).give(record.id)
    void this.#close(record.id)
    this.#doors.set(record.id, door)
    const isGiven = machine.env.ISLET_STORE_URL !== undefined
    const given = record.storeAccess && !isGiven ? this.#giveStore(record.id, machine) : undefined
    if (ahead && !given) return
    // When its answer is on the way: commands wait for it, a create does not.
    const opened = ahead ? undefined : setImmediate().then(() => door.open())
    const ready = Promise.all([opened, given]).then(() => {})
    if (how === 'created' && given) return ready
    // The sandbox runs on without it; nobody waits for this.
    machine.envReady = ready.catch((error) => {
      log.error({ err: error, sandbox: record.id }, 'a sandbox cannot reach this server')
    })
  }

  #newDoor({ linkDir }: Cell): Door {
    return new Door({
      path: `${linkDir}/${SOCKET_NAME}`,
      onConnection: (socket) => this.#server.emit('connection', socket),
      log: this.#options.log,
    })
  }

  async #openAhead(cell: Cell): Promise<void> {
    const door = this.#newDoor(cell)
    await door.open()
    this.#ahead.set(cell.id, door)
  }

  #takeAhead(cellId: string): Door | undefined {
    const door = this.#ahead.get(cellId)
    this.#ahead.delete(cellId)
    return door
  }

  /** What programs inside need to know: see docs/guide/inside.md. */
  async #giveStore(sandboxId: string, machine: Machine): Promise<void> {
    await machine.guest.ready()
    const port = await machine.guest.expose(SOCKET_NAME)
    machine.ownPorts.add(port)
    machine.env.ISLET_STORE_URL = `http://127.0.0.1:${port}/v1/store`
    machine.env.ISLET_STORE_TOKEN = this.#options.tokens.issueInside(sandboxId)
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const door = Door.of(incoming.socket)
    if (door) void door.serve(incoming, outgoing, this.#options.api.listener)
    else incoming.socket.destroy()
  }

  async #close(sandboxId: string): Promise<void> {
    const door = this.#doors.get(sandboxId)
    this.#doors.delete(sandboxId)
    await door?.close()
  }
}
