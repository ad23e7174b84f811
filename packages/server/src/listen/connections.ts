// The open connections of all listeners (API and previews). A connection costs memory and a file descriptor before it sends
// anything, so their number is bounded. At the bound, a new connection evicts another one:
//
//   - Strangers are connections without a valid key or token so far. They may use three quarters of all places, so that
//     clients with a key find a place. The stranger that has been idle longest is evicted first.
//   - One address may use half of the strangers' places. Loopback is exempt: all users of this machine and its proxies share it.
//   - A connection with a running request is never evicted.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isLoopback } from '../config/loopback.ts'

const STRANGERS = 3 / 4
const ONE_ADDRESS = 1 / 2

/** The connections of one listener. */
export interface Watched {
  /** Closes connections without a request so far: Node counts a connection as idle only after its first request. */
  closeUnused(): void
  /** Closes all connections, upgraded ones too. */
  closeAll(): void
}

interface Entry {
  socket: Socket
  /** The groups that count this connection. */
  groups: Group[]
  /** Running requests. */
  requests: number
  isKnown: boolean
  isUsed: boolean
  forget(): void
  know(): void
}

const entries = new WeakMap<object, Entry>()

/** The client has sent a valid key or token on this connection. */
export function markKnown(socket: object): void {
  const entry = entries.get(socket)
  if (entry && !entry.isKnown) entry.know()
}

export class Connections {
  readonly #all: Group
  readonly #strangers: Group
  readonly #addresses = new Map<string, Group>()
  /** By both addresses, to find the TCP connection below a TLS socket. */
  readonly #peers = new Map<string, Entry>()

  constructor({ max }: { max: number }) {
    this.#all = new Group(max)
    this.#strangers = new Group(Math.ceil(max * STRANGERS))
  }

  /** Counts the connections of a server from now on; `max` bounds this server alone. */
  watch(server: Server, { max = Number.POSITIVE_INFINITY } = {}): Watched {
    const own = new Group(max)
    const onRequest = ({ socket }: IncomingMessage, outgoing: ServerResponse): void => {
      const entry = entries.get(socket)
      if (!entry) return
      begin(entry)
      outgoing.once('close', () => end(entry))
    }
    server.on('connection', (socket: Socket) => this.#enter(socket, own))
    server.on('secureConnection', (socket: Socket) => {
      const entry = this.#peers.get(peerOf(socket))
      if (entry) entries.set(socket, entry)
    })
    for (const event of ['request', 'checkContinue', 'checkExpectation'])
      server.prependListener(event, onRequest)
    server.prependListener('upgrade', ({ socket }: IncomingMessage) => {
      const entry = entries.get(socket)
      if (entry) begin(entry) // until it closes
    })
    return { closeUnused: () => own.closeUnused(), closeAll: () => own.closeAll() }
  }

  #enter(socket: Socket, own: Group): void {
    const address = addressOf(socket)
    const ofAddress = this.#ofAddress(address)
    const hasRoom =
      own.makeRoom() &&
      ofAddress.makeRoom() &&
      this.#strangers.makeRoom() &&
      (this.#all.hasRoom || this.#strangers.evict() || this.#all.evict())
    if (!hasRoom) {
      if (ofAddress.size === 0) this.#addresses.delete(address)
      socket.destroy()
      return
    }
    const peer = peerOf(socket)
    const entry: Entry = {
      socket,
      groups: [own, this.#all, this.#strangers, ofAddress],
      requests: 0,
      isKnown: false,
      isUsed: false,
      forget: () => {
        for (const group of entry.groups) group.remove(entry)
        entry.groups = []
        if (ofAddress.size === 0) this.#addresses.delete(address)
        if (this.#peers.get(peer) === entry) this.#peers.delete(peer)
      },
      know: () => {
        entry.isKnown = true
        for (const group of [this.#strangers, ofAddress]) group.remove(entry)
        entry.groups = entry.groups.filter((group) => group === own || group === this.#all)
        if (ofAddress.size === 0) this.#addresses.delete(address)
      },
    }
    for (const group of entry.groups) group.add(entry)
    entries.set(socket, entry)
    this.#peers.set(peer, entry)
    socket.once('close', entry.forget)
  }

  #ofAddress(address: string): Group {
    const max = isLoopback(address) ? this.#strangers.max : Math.ceil(this.#strangers.max * ONE_ADDRESS)
    const group = this.#addresses.get(address) ?? new Group(max)
    this.#addresses.set(address, group)
    return group
  }
}

class Group {
  readonly max: number
  readonly #members = new Set<Entry>()
  /** Longest idle first. */
  readonly #idle = new Set<Entry>()

  constructor(max: number) {
    this.max = max
  }

  get size(): number {
    return this.#members.size
  }

  get hasRoom(): boolean {
    return this.#members.size < this.max
  }

  makeRoom(): boolean {
    return this.hasRoom || this.evict()
  }

  /** False if no connection is idle. */
  evict(): boolean {
    const [oldest] = this.#idle
    if (!oldest) return false
    oldest.forget()
    oldest.socket.destroy()
    return true
  }

  add(entry: Entry): void {
    this.#members.add(entry)
    this.#idle.add(entry)
  }

  remove(entry: Entry): void {
    this.#members.delete(entry)
    this.#idle.delete(entry)
  }

  setIdle(entry: Entry, isIdle: boolean): void {
    if (isIdle) this.#idle.add(entry)
    else this.#idle.delete(entry)
  }

  closeUnused(): void {
    for (const { socket, isUsed } of [...this.#idle]) if (!isUsed) socket.destroy()
  }

  closeAll(): void {
    for (const { socket } of [...this.#members]) socket.destroy()
  }
}

function begin(entry: Entry): void {
  entry.isUsed = true
  if (entry.requests++ === 0) for (const group of entry.groups) group.setIdle(entry, false)
}

function end(entry: Entry): void {
  if (--entry.requests === 0) for (const group of entry.groups) group.setIdle(entry, true)
}

function peerOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

/** For IPv6 the /64 network: one client usually has all its addresses. */
function addressOf({ remoteAddress = '::1' }: Socket): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/, '')
  if (!address.includes(':') || address === '::1') return address
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter(Boolean)
  const after = (tail ?? '').split(':').filter(Boolean)
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array(Math.max(0, zeros)).fill('0'), ...after].slice(0, 4).join(':')
}
