// A DNS forwarder on the bridge's address: the only service of this machine that sandboxes reach. It relays to the host's
// nameservers, which may be on the loopback or in a private network that sandboxes cannot reach. Queries are hostile: pending
// ones are limited, in total and for each sandbox.
import { randomInt } from 'node:crypto'
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { connect, createServer, isIP, isIPv6, type Server, type Socket } from 'node:net'

interface DnsOptions {
  address: string
  port?: number
  /** Nameservers, tried in order; absent: those of /etc/resolv.conf, which is read again when it changes. */
  upstreams?: readonly Upstream[]
}

export interface Upstream {
  address: string
  port?: number
}

const RESOLV_CONF = '/etc/resolv.conf'
const RESOLV_CONF_CHECK_MS = 1000
const DNS_PORT = 53
const HEADER_BYTES = 12
const RESPONSE_BIT = 0x80
const SERVFAIL = 2
// Two tries fit into the five seconds after which resolvers retry.
const TRY_MS = 2200
const MAX_PENDING = 1024
const MAX_PENDING_OF_ONE = 64
const MAX_CONNECTIONS = 256
const MAX_CONNECTIONS_OF_ONE = 16
const CONNECTION_IDLE_MS = 10_000

export class DnsForwarder {
  readonly #options: DnsOptions
  readonly #udp: UdpSocket
  readonly #tcp: Server
  readonly #pending = new Quota(MAX_PENDING, MAX_PENDING_OF_ONE)
  readonly #connections = new Quota(MAX_CONNECTIONS, MAX_CONNECTIONS_OF_ONE)
  readonly #open = new Set<{ destroy(): void }>()
  #fromFile: Upstream[] = []
  #fileCheckedAt = 0
  #fileChangedAt = -1

  private constructor(options: DnsOptions) {
    this.#options = options
    this.#udp = createSocket('udp4')
    this.#udp.on('message', (query, from) => void this.#answer(query, from).catch(() => {}))
    this.#tcp = createServer(
      { allowHalfOpen: true },
      (client) => void this.#relay(client).catch(() => client.destroy()),
    )
  }

  static async listen(options: DnsOptions): Promise<DnsForwarder> {
    const forwarder = new DnsForwarder(options)
    const { address, port = DNS_PORT } = options
    try {
      forwarder.#udp.bind(port, address)
      await once(forwarder.#udp, 'listening')
      forwarder.#tcp.listen(port, address)
      await once(forwarder.#tcp, 'listening')
    } catch (error) {
      forwarder.close()
      throw error
    }
    // Later errors (the bridge disappeared) must not end this process.
    forwarder.#udp.on('error', () => {})
    forwarder.#tcp.on('error', () => {})
    forwarder.#udp.unref()
    forwarder.#tcp.unref()
    return forwarder
  }

  close(): void {
    try {
      this.#udp.close()
    } catch {
      // It never listened, or is closed already.
    }
    this.#tcp.close()
    for (const socket of this.#open) socket.destroy()
  }

  async #answer(query: Buffer, from: RemoteInfo): Promise<void> {
    if (query.length < HEADER_BYTES || query[2]! & RESPONSE_BIT) return
    if (!this.#pending.take(from.address)) return
    try {
      for (const upstream of await this.#upstreams()) {
        const answer = await this.#ask(upstream, query)
        if (!answer) continue
        this.#udp.send(answer, from.port, from.address, () => {})
        return
      }
      this.#udp.send(failure(query), from.port, from.address, () => {})
    } finally {
      this.#pending.give(from.address)
    }
  }

  /** Asks one nameserver once, from a random port and with a random id. */
  async #ask(upstream: Upstream, query: Buffer): Promise<Buffer | undefined> {
    const socket = createSocket(isIPv6(upstream.address) ? 'udp6' : 'udp4')
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
    const id = randomInt(0x10000)
    const timer = setTimeout(resolve, TRY_MS)
    const handle = { destroy: () => resolve(undefined) }
    this.#open.add(handle)
    socket.on('error', () => resolve(undefined))
    socket.on('message', (answer) => {
      const fits = answer.length >= HEADER_BYTES && answer[2]! & RESPONSE_BIT && answer.readUInt16BE(0) === id
      if (fits) resolve(answer)
    })
    socket.connect(upstream.port ?? DNS_PORT, upstream.address, (error?: Error) => {
      if (error) return resolve(undefined)
      const relayed = Buffer.from(query)
      relayed.writeUInt16BE(id, 0)
      socket.send(relayed, (sendError) => sendError && resolve(undefined))
    })
    try {
      const answer = await promise
      if (answer) query.copy(answer, 0, 0, 2)
      return answer
    } finally {
      clearTimeout(timer)
      this.#open.delete(handle)
      socket.close()
    }
  }

  /** Relays TCP without parsing it; each side's pace limits the other. */
  async #relay(client: Socket): Promise<void> {
    const from = client.remoteAddress ?? ''
    client.on('error', () => client.destroy())
    if (!this.#connections.take(from)) return void client.destroy()
    client.once('close', () => this.#connections.give(from))
    const [upstream] = await this.#upstreams()
    if (!upstream) return void client.destroy()
    const server = connect({ host: upstream.address, port: upstream.port ?? DNS_PORT, allowHalfOpen: true })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#open.add(socket)
      socket.setTimeout(CONNECTION_IDLE_MS, () => socket.destroy())
      socket.on('error', () => socket.destroy())
      socket.once('close', () => {
        this.#open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
    if (client.destroyed) server.destroy()
  }

  async #upstreams(): Promise<readonly Upstream[]> {
    if (this.#options.upstreams) return this.#options.upstreams
    if (Date.now() - this.#fileCheckedAt < RESOLV_CONF_CHECK_MS) return this.#fromFile
    this.#fileCheckedAt = Date.now()
    const changedAt = (await stat(RESOLV_CONF).catch(() => undefined))?.mtimeMs ?? 0
    if (changedAt !== this.#fileChangedAt) {
      this.#fromFile = nameserversIn(await readFile(RESOLV_CONF, 'utf8').catch(() => ''))
      this.#fileChangedAt = changedAt
    }
    return this.#fromFile
  }
}

export function nameserversIn(resolvConf: string): Upstream[] {
  const addresses = resolvConf.split('\n').flatMap((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? [])
  return addresses.filter((address) => isIP(address.replace(/%.*/, ''))).map((address) => ({ address }))
}

/** The query answered with SERVFAIL, so that programs give up at once instead of waiting. */
function failure(query: Buffer): Buffer {
  const answer = Buffer.from(query)
  answer[2]! |= RESPONSE_BIT
  answer[3] = (answer[3]! & 0xf0) | SERVFAIL
  return answer
}

/** Limits what is in progress, in total and for each sandbox. */
class Quota {
  readonly #ofOne = new Map<string, number>()
  readonly #most: number
  readonly #mostOfOne: number
  #all = 0

  constructor(most: number, mostOfOne: number) {
    this.#most = most
    this.#mostOfOne = mostOfOne
  }

  take(who: string): boolean {
    const has = this.#ofOne.get(who) ?? 0
    if (this.#all >= this.#most || has >= this.#mostOfOne) return false
    this.#ofOne.set(who, has + 1)
    this.#all++
    return true
  }

  give(who: string): void {
    const has = this.#ofOne.get(who) ?? 0
    if (has <= 1) this.#ofOne.delete(who)
    else this.#ofOne.set(who, has - 1)
    this.#all--
  }
}
