// The open connections of all listeners, the API's and the previews'. A connection costs memory and a file descriptor before
// it has said anything, so there is a bound, and whoever connects when it is reached takes the place of another:
//
//   - Strangers have not shown a valid key or token on that connection. They have three quarters of all places, so that
//     clients with a key find one. The stranger that has been idle longest leaves first.
//   - One address has half of the strangers' places. Not loopback: every user of this machine, and a proxy on it, is there.
//   - A connection on which a request is being answered never leaves for another.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isLoopback } from '../config/loopback.ts'

const STRANGERS = 3 / 4
const ONE_ADDRESS = 1 / 2

/** The connections of one listener. */
export interface Watched {
  /** Ends those on which nothing was asked yet: Node counts a connection as idle only after its first request. */
  closeUnused(): void
  /** Ends all, also those that have changed their protocol. */
  closeAll(): void
}

interface Entry {
  socket: Socket
  /** Those that it is counted in. */
  groups: Group[]
  /** Being answered on it. */
  requests: number
  isKnown: boolean
  isUsed: boolean
  forget(): void
  know(): void
}

const entries = new WeakMap<object, Entry>()

/** Whoever is at the other end has shown a valid key or token. */
export function markKnown(socket: object): void {
  const entry = entries.get(socket)
  if (entry && !entry.isKnown) entry.know()
}

export class Connections {
  readonly #all: Group
  readonly #strangers: Group
  readonly #addresses = new Map<string, Group>()
  /** By both ends, to find the one that a TLS connection runs on. */
  readonly #peers = new Map<string, Entry>()

  constructor({ max }: { max: number }) {
    this.#all = new Group(max)
    this.#strangers = new Group(Math.ceil(max * STRANGERS))
  }

  /** Counts the connections of a server from now on; `max`: of this one alone. */
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
  /** The one that has been so longest first. */
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

  /** False: nobody is idle. */
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

/** Of IPv6 the network: whoever has one address there has all. */
function addressOf({ remoteAddress = '::1' }: Socket): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/, '')
  if (!address.includes(':') || address === '::1') return address
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter(Boolean)
  const after = (tail ?? '').split(':').filter(Boolean)
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array(Math.max(0, zeros)).fill('0'), ...after].slice(0, 4).join(':')
}
