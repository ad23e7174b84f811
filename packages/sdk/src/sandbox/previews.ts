import { type CreatePreview, IsletError, type Preview } from '@islet/contract/client'
import type { Client } from '../client/client.ts'

interface Abortable {
  signal?: AbortSignal
}

export interface UrlOfPort {
  port: number
  /** Checked, not chosen: what the server speaks is its own. Default: whichever it is. */
  protocol?: 'http' | 'https'
}

/** The URLs by which ports of one sandbox are reached from outside. */
export class Previews {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }

  create(body: CreatePreview, options: Abortable): Promise<Preview> {
    return this.#client.call('createPreview', { params: this.#params, body, ...options })
  }

  async list(options: Abortable): Promise<Preview[]> {
    return (await this.#client.call('listPreviews', { params: this.#params, ...options })).previews
  }

  async remove(port: number, options: Abortable): Promise<void> {
    await this.#client.call('deletePreview', { params: { ...this.#params, port: String(port) }, ...options })
  }

  async urlOf({ port, protocol }: UrlOfPort, options: Abortable): Promise<string> {
    const { url } = await this.create({ port, keep: true }, options)
    if (protocol === undefined || url.startsWith(`${protocol}:`)) return url
    throw new IsletError('not_supported', `Previews of this server are not served over ${protocol}.`, {
      hint:
        protocol === 'https'
          ? 'Give the server a certificate (ISLET_TLS_CERT), or set ISLET_PREVIEW_DOMAIN to a domain that a TLS proxy in front of it answers for.'
          : 'Leave the protocol out: ISLET_TLS_CERT or ISLET_PREVIEW_DOMAIN makes it https.',
    })
  }
}
