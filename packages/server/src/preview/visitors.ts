// Takes requests for previews: on the port of one preview, or on the main port by the Host header.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { IsletError } from '@islet/contract'
import { hostName } from '../config/loopback.ts'
import type { PreviewRecord } from '../db/previews.ts'
import type { Addresses } from './address.ts'
import { endWithPage, sendPage } from './pages.ts'
import { type ProxyParts, serve } from './proxy.ts'
import { gone } from './reach.ts'
import { isUpgrade } from './request.ts'
import { upgrade } from './upgrade.ts'

/** Takes the requests of an http.Server. */
export interface Handler {
  serve(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** If false, a request that asks for another protocol is served as if it had not asked. */
  isUpgrade(incoming: IncomingMessage): boolean
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
}

interface VisitorsParts extends ProxyParts {
  addresses: Addresses
  ofPort(sandboxId: string, port: number): PreviewRecord | undefined
  ofDomain(domain: string): PreviewRecord | undefined
  /** During shutdown every request is refused. */
  isClosing(): boolean
}

export class Visitors {
  readonly #parts: VisitorsParts

  constructor(parts: VisitorsParts) {
    this.#parts = parts
  }

  /** For a preview's own port. */
  atPort(sandboxId: string, port: number): Handler {
    return this.#handler(({ headers }) => {
      const record = this.#parts.ofPort(sandboxId, port)
      if (!record) throw noPreview()
      if (this.#parts.addresses.answersTo(headers.host, record)) return record
      throw new IsletError('forbidden', 'This preview is not known by that Host.', {
        hint: 'The server listens on loopback: use localhost or 127.0.0.1.',
      })
    })
  }

  /** Undefined if the request is not for a preview. */
  atMainPort({ headers }: IncomingMessage): Handler | undefined {
    const name = hostName(headers.host ?? '').replace(/\.$/, '')
    const record = this.#parts.ofDomain(name)
    if (record) return this.#handler(() => record)
    const match = this.#parts.addresses.match(name)
    if (match === undefined) return undefined
    return this.#handler(() => {
      const found = match === 'unknown' ? undefined : this.#parts.ofPort(match.sandboxId, match.port)
      if (found) return found
      throw match !== 'unknown' && this.#isGone(match.sandboxId) ? gone() : noPreview()
    })
  }

  #isGone(sandboxId: string): boolean {
    try {
      return this.#parts.sandboxes.record(sandboxId).status === 'stopped'
    } catch {
      return false // unknown, or removed from the records
    }
  }

  #handler(find: (incoming: IncomingMessage) => PreviewRecord): Handler {
    const enter = (incoming: IncomingMessage): PreviewRecord => {
      if (this.#parts.isClosing()) throw new IsletError('draining')
      return find(incoming)
    }
    // `serve` and `upgrade` should never reject; if one does, the server must not crash.
    const breaks = (connection: Destroyable) => (error: unknown) => {
      this.#parts.log.error({ err: error }, 'a preview was not answered')
      connection.destroy()
    }
    return {
      serve: (incoming, outgoing) => {
        try {
          serve(this.#parts, enter(incoming), incoming, outgoing).catch(breaks(outgoing))
        } catch (error) {
          outgoing.shouldKeepAlive = false
          sendPage(error as IsletError, incoming, outgoing)
        }
      },
      isUpgrade,
      upgrade: (incoming, socket, head) => {
        try {
          upgrade(this.#parts, enter(incoming), incoming, socket, head).catch(breaks(socket))
        } catch (error) {
          socket.on('error', () => {})
          endWithPage(error as IsletError, incoming, socket)
        }
      },
    }
  }
}

interface Destroyable {
  destroy(): unknown
}

function noPreview(): IsletError {
  return new IsletError('preview_not_found', 'There is no preview at this address.', {
    hint: 'It was deleted, or its sandbox is gone, or it was never made: islet preview makes one.',
  })
}
