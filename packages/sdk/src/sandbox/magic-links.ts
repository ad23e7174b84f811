import type { CreateMagicLink, MagicLink } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { type Abortable, guard } from '../options.ts'

export interface MagicLinkOptions extends CreateMagicLink, Abortable {}

/** URLs that sign one browser in to this sandbox, once. Needs the API key. */
export class MagicLinks extends SandboxPart {
  /** `redirectUrl`: the path of the server where the browser ends up. Default: /play/, a page with terminal, files and ports. */
  create(options: MagicLinkOptions = {}): Promise<MagicLink> {
    const { signal, ...body } = options
    return this.client.call('createMagicLink', { params: this.params, body, signal })
  }
}

guard(MagicLinks.prototype, 'sandbox.magicLinks', { create: [{ redirectUrl: 1, signal: 1 }] })
