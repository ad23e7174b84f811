// The way from inside a sandbox to this server: a unix socket in its link directory, which programs inside find at
// /.islet/inside.sock. The socket itself says which sandbox is calling; only routes that take their sandbox from the
// caller are served there (gate.ts). With `storeAccess` a port on the sandbox's loopback leads there too.
//
// Callers may be hostile: the number, rate and duration of connections, requests and large bodies are bounded per sandbox.
// Anything over a bound waits or is cut off at no cost to this server.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { IsletError } from '@islet/contract'
import type { Beginning, RunningSandbox } from '../../control/fleet.ts'
import type { Machine } from '../../control/machine.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Cell } from '../../engine/engine.ts'
import { createServer } from '../../lib/http.ts'
import type { Log } from '../../log.ts'
import type { Tokens } from '../../tokens.ts'
import type { Api } from '../api.ts'
import { expectContinue } from '../http/body.ts'
import { endWithError } from '../sockets/upgrade.ts'
import { Door } from './door.ts'

const SOCKET_NAME = 'inside.sock'
/** A key of the store, percent-encoded, and a token fit well. */
const MAX_HEADER_BYTES = 8 * 1024
/** The time for running requests before a sandbox is suspended. */
const LEAVE_MS = 1000

interface InsideSocketsOptions {
  api: Pick<Api, 'listener'>
  sandboxes: Sandboxes
  tokens: Tokens
  log: Log
}

export class InsideSockets {
  readonly #options: InsideSocketsOptions
  /** Does not listen itself: doors pass their connections to it. */
  readonly #server: Server
  readonly #doors = new Map<string, Door>()
  /** Doors of cells that have no sandbox yet, by cell id. */
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
   * A frozen sandbox keeps its connections. A sandbox whose memory is written to disk is restored in a new cell and loses them.
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
      // The sandbox may be gone, or may have a new door.
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
    // After the answer to the create is sent: commands wait for the door, a create does not.
    const opened = ahead ? undefined : setImmediate().then(() => door.open())
    const ready = Promise.all([opened, given]).then(() => {})
    if (how === 'created' && given) return ready
    // If this fails, the sandbox runs without the door.
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

  /** Sets the variables that programs inside use: see docs/guide/inside.md. */
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
